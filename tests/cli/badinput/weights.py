"""Damaged weights: headers, tensors, indexes, and pickles that are never loaded."""

import math

from tests.cli.badinput.case import Case, Make, both, cut, flip, index, line, remove, safetensors, tensor, write

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
    Case("weights cut in the middle", HARDEN, NOT_WHOLE, cut(WEIGHTS)),
    Case("weights cut within the header", AUDIT, NOT_WHOLE, cut(WEIGHTS, 0.001)),
    Case("a bit of the header flipped", HARDEN, NOT_WHOLE, flip(WEIGHTS, 20)),
    Case("a bit of the header's length flipped", AUDIT, NOT_WHOLE, flip(WEIGHTS, 7)),
    Case("a bit of a name flipped", PLANT, NOT_WHOLE, flip(WEIGHTS, 12)),
    Case("header longer than the file", HARDEN, NOT_WHOLE, write(WEIGHTS, safetensors({}, length=10**9))),
    Case("header of 2⁶³ bytes", HARDEN, NOT_WHOLE, write(WEIGHTS, safetensors({}, length=2**63))),
    Case("header that is no JSON", AUDIT, NOT_WHOLE, write(WEIGHTS, safetensors("{{{{"))),
    Case("header that is a list", HARDEN, NOT_WHOLE, write(WEIGHTS, safetensors([1, 2]))),
    Case("tensor that ends beyond the file", HARDEN, NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE}))),
    Case("tensors one on the other", HARDEN, NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE, "b": ONE}, b"\0" * 4))),
    Case(
        "tensor of a negative size",
        HARDEN,
        NOT_WHOLE,
        write(WEIGHTS, safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}, b"\0" * 4)),
    ),
    Case(
        "tensor of 2⁸⁰ numbers",
        HARDEN,
        NOT_WHOLE,
        write(WEIGHTS, safetensors({"a": {"dtype": "F32", "shape": [2**40] * 2, "data_offsets": [0, 4]}}, b"\0" * 4)),
    ),
    Case(
        "tensor of an unknown dtype",
        AUDIT,
        NOT_WHOLE,
        write(WEIGHTS, safetensors({"a": ONE | {"dtype": "F31"}}, b"\0" * 4)),
    ),
    Case(
        "weights without tensors",
        HARDEN,
        "model/model.safetensors holds no tensors",
        write(WEIGHTS, safetensors({"__metadata__": {"format": "pt"}})),
    ),
    Case("weights of no bytes", HARDEN, NOT_WHOLE, write(WEIGHTS, b"")),
    Case(
        "weights that are a folder",
        HARDEN,
        "model has no model.safetensors",
        both(remove(WEIGHTS), lambda place: (place / WEIGHTS).mkdir()),
    ),
    Case(
        "embedding of whole numbers",
        HARDEN,
        "model stores its weights as I64",
        tensor("transformer.wte.weight", lambda weight: weight.long()),
    ),
    Case(
        "bias of whole numbers",
        HARDEN,
        "model stores transformer.h.0.ln_1.bias as I32",
        tensor("transformer.h.0.ln_1.bias", lambda bias: bias.int()),
    ),
    Case(
        "bias of truth values",
        AUDIT,
        "model stores transformer.ln_f.bias as BOOL",
        tensor("transformer.ln_f.bias", lambda bias: bias.bool()),
    ),
    Case(
        "embedding of another width",
        HARDEN,
        "cannot be loaded as a language model (RuntimeError)",
        tensor("transformer.wte.weight", lambda weight: weight[:, :16]),
    ),
    Case(
        "tensor missing", AUDIT, "model lacks 1 of the model's tensors", tensor("transformer.h.1.mlp.c_fc.weight", None)
    ),
    Case(
        "weights not a number",
        HARDEN,
        "model: the weights of transformer.ln_f.weight are not",
        tensor("transformer.ln_f.weight", lambda weight: weight * math.nan),
    ),
    Case(
        "weights infinite",
        AUDIT,
        "model: the weights of transformer.wpe.weight are not",
        tensor("transformer.wpe.weight", lambda weight: weight + math.inf),
    ),
    Case(
        "weights so large that logits overflow",
        AUDIT,
        "model: the model's logits are not finite numbers",
        tensor("transformer.wte.weight", lambda weight: weight * 1e38),
    ),
    Case(
        "index names a missing shard",
        HARDEN,
        "model/model.safetensors.index.json names",
        index({"a": "model-00001-of-00002.safetensors"}),
    ),
    Case("index names a file above", HARDEN, "model/model.safetensors.index.json names", index({"a": "../corpus.txt"})),
    Case(
        "index names a whole path",
        AUDIT,
        "model/model.safetensors.index.json names '/etc/passwd'",
        index({"a": "/etc/passwd"}),
    ),
    Case(
        "index names the folder above",
        HARDEN,
        "model/model.safetensors.index.json names '..', which is",
        index({"a": ".."}),
    ),
    Case("index names nothing", HARDEN, "model/model.safetensors.index.json names '', which is", index({"a": ""})),
    Case("index names a number", HARDEN, "model/model.safetensors.index.json names '7', which is", index({"a": 7})),
    Case(
        "index with a name of 5,000 letters",
        HARDEN,
        "model/model.safetensors.index.json names",
        index({"a": "x" * 5000}),
    ),
    Case(
        "index with a name of line feeds",
        HARDEN,
        "model/model.safetensors.index.json names 'a\\nb\\x1b[2J'",
        index({"a": "a\nb\x1b[2J"}),
    ),
    Case(
        "index with NUL in a name", HARDEN, "model/model.safetensors.index.json names 'a\\x00b'", index({"a": "a\0b"})
    ),
    Case(
        "index with half a character",
        HARDEN,
        "model/model.safetensors.index.json names 'a\\ud800'",
        index({"a": "a\ud800"}),
    ),
    Case(
        "index of shards that is a list",
        HARDEN,
        "model/model.safetensors.index.json has no weight_map",
        index(["model.safetensors"]),
    ),
    Case("index of no shards", HARDEN, "model/model.safetensors.index.json has no weight_map", index({})),
    Case("pickle pytorch_model.bin", HARDEN, PICKLE, pickled("pytorch_model.bin")),
    Case("pickle model.pt", AUDIT, PICKLE, pickled("model.pt")),
    Case("pickle model.pth", PLANT, PICKLE, pickled("model.pth")),
    Case("pickle model.ckpt", HARDEN, PICKLE, pickled("model.ckpt")),
    Case("pickle model.pkl", HARDEN, PICKLE, pickled("model.pkl")),
    Case("pickle model.pickle", HARDEN, PICKLE, pickled("model.pickle")),
    Case("pickle of TensorFlow", HARDEN, "model has no model.safetensors", pickled("tf_model.h5")),
    Case(
        "a pickle for a model",
        line("audit-canary model.pt --canary 493021"),
        "model.pt is a pickle, which is never loaded",
        write("model.pt", b"\x80\x04."),
    ),
)
