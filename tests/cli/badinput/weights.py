"""Damaged weights: headers, tensors, indexes, and pickles that are never loaded."""

import math

from tests.cli.badinput.case import Case, Make, both, cases, index, line, remove, safetensors, tensor, write

HARDEN = line("harden model --data corpus.txt -o out -q")

AUDIT = ("audit-canary", "model", "--canary", "My ID is 493021")

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
            "header of 2⁶³ bytes": (NOT_WHOLE, write(WEIGHTS, safetensors({}, length=2**63))),
            "tensor that ends beyond the file": (NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE}))),
            "tensors one on the other": (NOT_WHOLE, write(WEIGHTS, safetensors({"a": ONE, "b": ONE}, b"\0" * 4))),
            "tensor of 2⁸⁰ numbers": (
                NOT_WHOLE,
                write(
                    WEIGHTS,
                    safetensors({"a": {"dtype": "F32", "shape": [2**40] * 2, "data_offsets": [0, 4]}}, b"\0" * 4),
                ),
            ),
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
            "index names a file above": ("model/model.safetensors.index.json names", index({"a": "../corpus.txt"})),
            "index names a number": ("model/model.safetensors.index.json names '7', which is", index({"a": 7})),
            "index with a name of 5,000 letters": (
                "model/model.safetensors.index.json names",
                index({"a": "x" * 5000}),
            ),
            "index with a name of line feeds": (
                "model/model.safetensors.index.json names 'a\\nb\\x1b[2J'",
                index({"a": "a\nb\x1b[2J"}),
            ),
            "index of shards that is a list": (
                "model/model.safetensors.index.json has no weight_map",
                index(["model.safetensors"]),
            ),
            "index of no shards": ("model/model.safetensors.index.json has no weight_map", index({})),
            "pickle pytorch_model.bin": (PICKLE, pickled("pytorch_model.bin")),
        },
    ),
    *cases(
        AUDIT,
        {
            "tensor of an unknown dtype": (
                NOT_WHOLE,
                write(WEIGHTS, safetensors({"a": ONE | {"dtype": "F31"}}, b"\0" * 4)),
            ),
            "bias of truth values": (
                "model stores transformer.ln_f.bias as BOOL",
                tensor("transformer.ln_f.bias", lambda bias: bias.bool()),
            ),
            "weights infinite": (
                "model: the weights of transformer.wpe.weight are not",
                tensor("transformer.wpe.weight", lambda weight: weight + math.inf),
            ),
            "weights so large that logits overflow": (
                "model: the model's logits are not finite numbers",
                tensor("transformer.wte.weight", lambda weight: weight * 1e38),
            ),
            "pickle model.pt": (PICKLE, pickled("model.pt")),
        },
    ),
    Case(
        "a pickle for a model",
        line("audit-canary model.pt --canary 493021"),
        "model.pt is a pickle, which is never loaded",
        write("model.pt", b"\x80\x04."),
    ),
)
