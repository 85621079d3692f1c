"""Damaged weights: headers, tensors, indexes, and pickles that are never loaded."""

import math

from tests.cli.badinput.case import (
    Case,
    Make,
    both,
    cut,
    flip,
    index,
    line,
    remove,
    safetensors,
    tensor,
    write,
)

HARDEN = line("harden model --data corpus.txt -o out -q")

AUDIT = ("audit-canary", "model", "--canary", "My ID is 493021")

PLANT = line("plant-canary corpus.txt -o out --manifest canaries.json --tokenizer model")

WEIGHTS = "model/model.safetensors"

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def pickled(name: str) -> Make:
    """The weights under a pickle's name."""
    return lambda place: (place / WEIGHTS).rename(place / "model" / name)


NOT_WHOLE = "model/model.safetensors is not a whole safetensors file. Copy or save it again."
PICKLE = (
    "model holds its weights as a pickle, which is never loaded. Save them as safetensors: "
    "model.save_pretrained(folder) in a place where you trust the file."
)

CASES = (
    Case(name="weights cut in the middle", make=cut(WEIGHTS), command=HARDEN, said=NOT_WHOLE),
    Case(name="weights cut within the header", make=cut(WEIGHTS, 0.001), command=AUDIT, said=NOT_WHOLE),
    Case(name="a bit of the header flipped", make=flip(WEIGHTS, 20), command=HARDEN, said=NOT_WHOLE),
    Case(name="a bit of the header's length flipped", make=flip(WEIGHTS, 7), command=AUDIT, said=NOT_WHOLE),
    Case(name="a bit of a name flipped", make=flip(WEIGHTS, 12), command=PLANT, said=NOT_WHOLE),
    Case(
        name="header longer than the file",
        make=write(WEIGHTS, safetensors({}, length=10**9)),
        command=HARDEN,
        said=NOT_WHOLE,
    ),
    Case(
        name="header of 2⁶³ bytes", make=write(WEIGHTS, safetensors({}, length=2**63)), command=HARDEN, said=NOT_WHOLE
    ),
    Case(name="header that is no JSON", make=write(WEIGHTS, safetensors("{{{{")), command=AUDIT, said=NOT_WHOLE),
    Case(name="header that is a list", make=write(WEIGHTS, safetensors([1, 2])), command=HARDEN, said=NOT_WHOLE),
    Case(
        name="tensor that ends beyond the file",
        make=write(WEIGHTS, safetensors({"a": ONE})),
        command=HARDEN,
        said=NOT_WHOLE,
    ),
    Case(
        name="tensors one on the other",
        make=write(WEIGHTS, safetensors({"a": ONE, "b": ONE}, b"\0" * 4)),
        command=HARDEN,
        said=NOT_WHOLE,
    ),
    Case(
        name="tensor of a negative size",
        make=write(WEIGHTS, safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}, b"\0" * 4)),
        command=HARDEN,
        said=NOT_WHOLE,
    ),
    Case(
        name="tensor of 2⁸⁰ numbers",
        make=write(
            WEIGHTS, safetensors({"a": {"dtype": "F32", "shape": [2**40] * 2, "data_offsets": [0, 4]}}, b"\0" * 4)
        ),
        command=HARDEN,
        said=NOT_WHOLE,
    ),
    Case(
        name="tensor of an unknown dtype",
        make=write(WEIGHTS, safetensors({"a": ONE | {"dtype": "F31"}}, b"\0" * 4)),
        command=AUDIT,
        said=NOT_WHOLE,
    ),
    Case(
        name="weights without tensors",
        make=write(WEIGHTS, safetensors({"__metadata__": {"format": "pt"}})),
        command=HARDEN,
        said="model/model.safetensors holds no tensors. Copy or save it again.",
    ),
    Case(name="weights of no bytes", make=write(WEIGHTS, b""), command=HARDEN, said=NOT_WHOLE),
    Case(
        name="weights that are a folder",
        make=both(remove(WEIGHTS), lambda place: (place / WEIGHTS).mkdir()),
        command=HARDEN,
        said="model has no model.safetensors. Give a model folder as save_pretrained writes it.",
    ),
    Case(
        name="embedding of whole numbers",
        make=tensor("transformer.wte.weight", lambda weight: weight.long()),
        command=HARDEN,
        said="model stores its weights as I64. Save them as float32, float16 or bfloat16.",
    ),
    Case(
        name="bias of whole numbers",
        make=tensor("transformer.h.0.ln_1.bias", lambda bias: bias.int()),
        command=HARDEN,
        said="model stores transformer.h.0.ln_1.bias as I32. Save it as float32, float16 or bfloat16.",
    ),
    Case(
        name="bias of truth values",
        make=tensor("transformer.ln_f.bias", lambda bias: bias.bool()),
        command=AUDIT,
        said="model stores transformer.ln_f.bias as BOOL. Save it as float32, float16 or bfloat16.",
    ),
    Case(
        name="embedding of another width",
        make=tensor("transformer.wte.weight", lambda weight: weight[:, :16]),
        command=HARDEN,
        said="model cannot be loaded as a language model (RuntimeError). Check that transformers loads it: "
        "AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    ),
    Case(
        name="tensor missing",
        make=tensor("transformer.h.1.mlp.c_fc.weight", None),
        command=AUDIT,
        said="model lacks 1 of the model's tensors, transformer.h.1.mlp.c_fc.weight among them. Give the whole "
        "checkpoint; an adapter must be merged first.",
    ),
    Case(
        name="weights not a number",
        make=tensor("transformer.ln_f.weight", lambda weight: weight * math.nan),
        command=HARDEN,
        said="model: the weights of transformer.ln_f.weight are not finite numbers. Give an undamaged checkpoint.",
    ),
    Case(
        name="weights infinite",
        make=tensor("transformer.wpe.weight", lambda weight: weight + math.inf),
        command=AUDIT,
        said="model: the weights of transformer.wpe.weight are not finite numbers. Give an undamaged checkpoint.",
    ),
    Case(
        name="weights so large that logits overflow",
        make=tensor("transformer.wte.weight", lambda weight: weight * 1e38),
        command=AUDIT,
        said="model: the model's logits are not finite numbers. Give an undamaged checkpoint.",
    ),
    Case(
        name="index names a missing shard",
        make=index({"a": "model-00001-of-00002.safetensors"}),
        command=HARDEN,
        said="model/model.safetensors.index.json names 'model-00001-of-00002.safetensors', which is not in the "
        "folder. Restore the missing file.",
    ),
    Case(
        name="index names a file above",
        make=index({"a": "../corpus.txt"}),
        command=HARDEN,
        said="model/model.safetensors.index.json names '../corpus.txt', which is not in the folder. Restore the "
        "missing file.",
    ),
    Case(
        name="index names a whole path",
        make=index({"a": "/etc/passwd"}),
        command=AUDIT,
        said="model/model.safetensors.index.json names '/etc/passwd', which is not in the folder. Restore the "
        "missing file.",
    ),
    Case(
        name="index names the folder above",
        make=index({"a": ".."}),
        command=HARDEN,
        said="model/model.safetensors.index.json names '..', which is not in the folder. Restore the missing file.",
    ),
    Case(
        name="index names nothing",
        make=index({"a": ""}),
        command=HARDEN,
        said="model/model.safetensors.index.json names '', which is not in the folder. Restore the missing file.",
    ),
    Case(
        name="index names a number",
        make=index({"a": 7}),
        command=HARDEN,
        said="model/model.safetensors.index.json names '7', which is not in the folder. Restore the missing file.",
    ),
    Case(
        name="index with a name of 5,000 letters",
        make=index({"a": "x" * 5000}),
        command=HARDEN,
        said="model/model.safetensors.index.json names "
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…', which is not in the folder. Restore the "
        "missing file.",
    ),
    Case(
        name="index with a name of line feeds",
        make=index({"a": "a\nb\x1b[2J"}),
        command=HARDEN,
        said="model/model.safetensors.index.json names 'a\\nb\\x1b[2J', which is not in the folder. Restore the "
        "missing file.",
    ),
    Case(
        name="index with NUL in a name",
        make=index({"a": "a\0b"}),
        command=HARDEN,
        said="model/model.safetensors.index.json names 'a\\x00b', which is not in the folder. Restore the missing "
        "file.",
    ),
    Case(
        name="index with half a character",
        make=index({"a": "a\ud800"}),
        command=HARDEN,
        said="model/model.safetensors.index.json names 'a\\ud800', which is not in the folder. Restore the missing "
        "file.",
    ),
    Case(
        name="index of shards that is a list",
        make=index(["model.safetensors"]),
        command=HARDEN,
        said="model/model.safetensors.index.json has no weight_map. Save the model again.",
    ),
    Case(
        name="index of no shards",
        make=index({}),
        command=HARDEN,
        said="model/model.safetensors.index.json has no weight_map. Save the model again.",
    ),
    Case(name="pickle pytorch_model.bin", make=pickled("pytorch_model.bin"), command=HARDEN, said=PICKLE),
    Case(name="pickle model.pt", make=pickled("model.pt"), command=AUDIT, said=PICKLE),
    Case(name="pickle model.pth", make=pickled("model.pth"), command=PLANT, said=PICKLE),
    Case(name="pickle model.ckpt", make=pickled("model.ckpt"), command=HARDEN, said=PICKLE),
    Case(name="pickle model.pkl", make=pickled("model.pkl"), command=HARDEN, said=PICKLE),
    Case(name="pickle model.pickle", make=pickled("model.pickle"), command=HARDEN, said=PICKLE),
    Case(
        name="pickle of TensorFlow",
        make=pickled("tf_model.h5"),
        command=HARDEN,
        said="model has no model.safetensors. Give a model folder as save_pretrained writes it.",
    ),
    Case(
        name="a pickle for a model",
        make=write("model.pt", b"\x80\x04."),
        command=line("audit-canary model.pt --canary 493021"),
        said="model.pt is a pickle, which is never loaded. Give a model folder as save_pretrained writes it; nothing "
        "is downloaded by name.",
    ),
)
