"""Damaged weights: headers, tensors, indexes, and pickles that are never loaded."""

import math

from tests.cli.badinput.case import Case, Make, both, cases, cut, flip, index, line, remove, safetensors, tensor, write

HARDEN = line("harden model --data corpus.txt -o out -q")

AUDIT = ("audit-canary", "model", "--canary", "My ID is 493021")

PLANT = line("plant-canary corpus.txt -o out --manifest canaries.json --tokenizer model")

WEIGHTS = "model/model.safetensors"

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def pickled(name: str) -> Make:
    """The weights under a pickle's name."""
    return lambda place: (place / WEIGHTS).rename(place / "model" / name)


NOT_WHOLE = "model/model.safetensors is not a whole safetensors file. Copy or save it again."
PICKLE = "model holds its weights as a pickle, which is never loaded"

CASES = (
    *cases(
        HARDEN,
        {
            "weights cut in the middle": (NOT_WHOLE, cut(WEIGHTS)),
            "a bit of the header flipped": (NOT_WHOLE, flip(WEIGHTS, 20)),
            "header longer than the file": (NOT_WHOLE, write(WEIGHTS, safetensors({}, length=10**9))),
            "header of 2⁶³ bytes": (NOT_WHOLE, write(WEIGHTS, safetensors({}, length=2**63))),
            "header that is a list": (NOT_WHOLE, write(WEIGHTS, safetensors([1, 2]))),
            "tensor that ends beyond the file": (NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE}))),
            "tensors one on the other": (NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE, "b": ONE}, b"\0" * 4))),
            "tensor of a negative size": (
                NOT_WHOLE,
                write(WEIGHTS, safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}, b"\0" * 4)),
            ),
            "tensor of 2⁸⁰ numbers": (
                NOT_WHOLE,
                write(
                    WEIGHTS,
                    safetensors({"a": {"dtype": "F32", "shape": [2**40] * 2, "data_offsets": [0, 4]}}, b"\0" * 4),
                ),
            ),
            "weights without tensors": (
                "model/model.safetensors holds no tensors",
                write(WEIGHTS, safetensors({"__metadata__": {"format": "pt"}})),
            ),
            "weights of no bytes": (NOT_WHOLE, write(WEIGHTS, b"")),
            "weights that are a folder": (
                "model has no model.safetensors",
                both(remove(WEIGHTS), lambda place: (place / WEIGHTS).mkdir()),
            ),
            "embedding of whole numbers": (
                "model stores its weights as I64",
                tensor("transformer.wte.weight", lambda weight: weight.long()),
            ),
            "bias of whole numbers": (
                "model stores transformer.h.0.ln_1.bias as I32",
                tensor("transformer.h.0.ln_1.bias", lambda bias: bias.int()),
            ),
            "embedding of another width": (
                "cannot be loaded as a language model (RuntimeError)",
                tensor("transformer.wte.weight", lambda weight: weight[:, :16]),
            ),
            "weights not a number": (
                "model: the weights of transformer.ln_f.weight are not",
                tensor("transformer.ln_f.weight", lambda weight: weight * math.nan),
            ),
            "index names a missing shard": (
                "model/model.safetensors.index.json names",
                index({"a": "model-00001-of-00002.safetensors"}),
            ),
            "index names a file above": ("model/model.safetensors.index.json names", index({"a": "../corpus.txt"})),
            "index names the folder above": (
                "model/model.safetensors.index.json names '..', which is",
                index({"a": ".."}),
            ),
            "index names nothing": ("model/model.safetensors.index.json names '', which is", index({"a": ""})),
            "index names a number": ("model/model.safetensors.index.json names '7', which is", index({"a": 7})),
            "index with a name of 5,000 letters": (
                "model/model.safetensors.index.json names",
                index({"a": "x" * 5000}),
            ),
            "index with a name of line feeds": (
                "model/model.safetensors.index.json names 'a\\nb\\x1b[2J'",
                index({"a": "a\nb\x1b[2J"}),
            ),
            "index with NUL in a name": ("model/model.safetensors.index.json names 'a\\x00b'", index({"a": "a\0b"})),
            "index with half a character": (
                "model/model.safetensors.index.json names 'a\\ud800'",
                index({"a": "a\ud800"}),
            ),
            "index of shards that is a list": (
                "model/model.safetensors.index.json has no weight_map",
                index(["model.safetensors"]),
            ),
            "index of no shards": ("model/model.safetensors.index.json has no weight_map", index({})),
            "pickle pytorch_model.bin": (PICKLE, pickled("pytorch_model.bin")),
            "pickle model.ckpt": (PICKLE, pickled("model.ckpt")),
            "pickle model.pkl": (PICKLE, pickled("model.pkl")),
            "pickle model.pickle": (PICKLE, pickled("model.pickle")),
            "pickle of TensorFlow": ("model has no model.safetensors", pickled("tf_model.h5")),
        },
    ),
    *cases(
        AUDIT,
        {
            "weights cut within the header": (NOT_WHOLE, cut(WEIGHTS, 0.001)),
            "a bit of the header's length flipped": (NOT_WHOLE, flip(WEIGHTS, 7)),
            "header that is no JSON": (NOT_WHOLE, write(WEIGHTS, safetensors("{{{{"))),
            "tensor of an unknown dtype": (
                NOT_WHOLE,
                write(WEIGHTS, safetensors({"a": ONE | {"dtype": "F31"}}, b"\0" * 4)),
            ),
            "bias of truth values": (
                "model stores transformer.ln_f.bias as BOOL",
                tensor("transformer.ln_f.bias", lambda bias: bias.bool()),
            ),
            "tensor missing": ("model lacks 1 of the model's tensors", tensor("transformer.h.1.mlp.c_fc.weight", None)),
            "weights infinite": (
                "model: the weights of transformer.wpe.weight are not",
                tensor("transformer.wpe.weight", lambda weight: weight + math.inf),
            ),
            "weights so large that logits overflow": (
                "model: the model's logits are not finite numbers",
                tensor("transformer.wte.weight", lambda weight: weight * 1e38),
            ),
            "index names a whole path": (
                "model/model.safetensors.index.json names '/etc/passwd'",
                index({"a": "/etc/passwd"}),
            ),
            "pickle model.pt": (PICKLE, pickled("model.pt")),
        },
    ),
    *cases(
        PLANT,
        {"a bit of a name flipped": (NOT_WHOLE, flip(WEIGHTS, 12)), "pickle model.pth": (PICKLE, pickled("model.pth"))},
    ),
    Case(
        "a pickle for a model",
        line("audit-canary model.pt --canary 493021"),
        "model.pt is a pickle, which is never loaded",
        write("model.pt", b"\x80\x04."),
    ),
)
