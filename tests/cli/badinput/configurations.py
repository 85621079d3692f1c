"""Configurations, tokenizers and adapters that lie or ask for code, and folders that are none."""

import json
from pathlib import Path

from tests.cli.badinput.case import (
    Case,
    Make,
    both,
    change,
    cut,
    line,
    link,
    nothing,
    remove,
    safetensors,
    tensor,
    write,
)

HARDEN = line("harden model --data corpus.txt -o out -q")

AUDIT = ("audit-canary", "model", "--canary", "My ID is 493021")

PLANT = line("plant-canary corpus.txt -o out --manifest canaries.json --tokenizer model")

ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "model", "r": 2, "target_modules": ["c_attn"]}


def adapter(**members: object) -> Make:
    """A folder of an adapter of the model."""

    return both(
        lambda place: (place / "adapter").mkdir(),
        write("adapter/adapter_config.json", json.dumps(ADAPTER | members)),
        write("adapter/adapter_model.safetensors", safetensors({"a": ONE}, b"\0" * 4)),
    )


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def nested(depth: int) -> str:
    """JSON that is an object with lists in lists."""
    return '{"a": ' + "[" * depth + "]" * depth + "}"


def same_number(place: Path) -> None:
    """Two tokens of the vocabulary with one number."""
    file = place / "model" / "tokenizer.json"
    actual = json.loads(file.read_text())
    actual["model"]["vocab"]["5"] = actual["model"]["vocab"]["6"]
    file.write_text(json.dumps(actual))


NO_JSON = "model/config.json is not valid JSON. Copy or save it again."
NO_MODEL = (
    "model cannot be loaded as a language model (RuntimeError). Check that transformers loads it: "
    "AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM."
)
NO_CONFIGURATION = "model has no config.json. Give a model folder as save_pretrained writes it."

CASES = (
    Case(name="configuration missing", make=remove("model/config.json"), command=HARDEN, said=NO_CONFIGURATION),
    Case(name="configuration cut", make=cut("model/config.json"), command=HARDEN, said=NO_JSON),
    Case(
        name="configuration a list",
        make=write("model/config.json", "[]"),
        command=AUDIT,
        said="model/config.json holds no JSON object. Copy or save it again.",
    ),
    Case(
        name="configuration not UTF-8", make=write("model/config.json", b'{"a": "\xff"}'), command=HARDEN, said=NO_JSON
    ),
    Case(
        name="configuration nested 100,000 deep",
        make=write("model/config.json", nested(100_000)),
        command=HARDEN,
        said=NO_JSON,
    ),
    Case(
        name="configuration a link to itself",
        make=link("model/config.json", "config.json"),
        command=HARDEN,
        said=NO_CONFIGURATION,
    ),
    Case(
        name="configuration a folder",
        make=both(remove("model/config.json"), lambda place: (place / "model/config.json").mkdir()),
        command=HARDEN,
        said=NO_CONFIGURATION,
    ),
    Case(
        name="configuration of a number of 5,000 digits",
        make=write("model/config.json", '{"n_layer": 1' + "0" * 5000 + "}"),
        command=HARDEN,
        said=NO_JSON,
    ),
    Case(
        name="code of its own in the configuration",
        make=change("model/config.json", auto_map={"AutoModel": "evil.Model"}),
        command=HARDEN,
        said="model/config.json asks for code of its own (auto_map), which is never run. Give a model whose "
        "architecture transformers knows.",
    ),
    Case(
        name="code of its own deep in the configuration",
        make=change("model/config.json", text_config={"auto_map": {"AutoConfig": "evil.C"}}),
        command=AUDIT,
        said="model/config.json asks for code of its own (auto_map), which is never run. Give a model whose "
        "architecture transformers knows.",
    ),
    Case(
        name="code of its own in the tokenizer",
        make=change("model/tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.T", None]}),
        command=PLANT,
        said="model/tokenizer_config.json asks for code of its own (auto_map), which is never run. Give a model "
        "whose architecture transformers knows.",
    ),
    Case(
        name="a kernel of the hub",
        make=change("model/config.json", attn_implementation="kernels-community/evil"),
        command=HARDEN,
        said="model/config.json asks for a kernel of the hub (attn_implementation), which is never run. Take it out.",
    ),
    Case(
        name="quantised weights",
        make=change("model/config.json", quantization_config={"quant_method": "bitsandbytes"}),
        command=HARDEN,
        said="model/config.json says that the weights are quantised. Give the model as it was before; the quantised "
        "one can be audited.",
    ),
    Case(
        name="model type unknown",
        make=change("model/config.json", model_type="nobody-knows"),
        command=HARDEN,
        said="model cannot be loaded as a language model (ValueError). Check that transformers loads it: "
        "AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    ),
    Case(
        name="model type a number",
        make=change("model/config.json", model_type=7),
        command=HARDEN,
        said="model cannot be loaded as a language model (ValueError). Check that transformers loads it: "
        "AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    ),
    Case(
        name="layers by the million",
        make=change("model/config.json", n_layer=10**6),
        command=HARDEN,
        said="model/config.json says n_layer is 1000000, and the weights have 28 tensors. Copy or save the model "
        "again.",
    ),
    Case(
        name="layers below zero",
        make=change("model/config.json", n_layer=-1),
        command=HARDEN,
        said="model/config.json says n_layer is -1, and the weights have 28 tensors. Copy or save the model again.",
    ),
    Case(
        name="a layer less than the weights have",
        make=change("model/config.json", n_layer=1),
        command=HARDEN,
        said="model has 11 tensors for which the configuration has no layer, transformer.h.1.attn.c_attn.weight "
        "among them. Copy or save the model again.",
    ),
    Case(
        name="heads zero",
        make=change("model/config.json", n_head=0),
        command=HARDEN,
        said="model cannot be loaded as a language model (ZeroDivisionError). Check that transformers loads it: "
        "AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    ),
    Case(
        name="width a word",
        make=change("model/config.json", n_embd="wide"),
        command=HARDEN,
        said="model cannot be loaded as a language model (StrictDataclassFieldValidationError). Check that "
        "transformers loads it: AutoModelForCausalLM.from_pretrained, or AutoModelForSeq2SeqLM.",
    ),
    Case(name="width of a billion", make=change("model/config.json", n_embd=10**9), command=AUDIT, said=NO_MODEL),
    Case(
        name="vocabulary of a billion",
        make=change("model/config.json", vocab_size=10**9),
        command=HARDEN,
        said="model/config.json describes a model of 32,000,027,520 parameters, and the weights have 40,320. Copy or "
        "save the model again.",
    ),
    Case(name="context below zero", make=change("model/config.json", n_positions=-5), command=HARDEN, said=NO_MODEL),
    Case(
        name="tokenizer cut",
        make=cut("model/tokenizer.json"),
        command=PLANT,
        said="model: the tokenizer cannot be read. Save the model's fast tokenizer again.",
    ),
    Case(
        name="tokenizer of another kind",
        make=write("model/tokenizer.json", '{"model": {"type": "Magic"}}'),
        command=PLANT,
        said="model: the tokenizer cannot be read. Save the model's fast tokenizer again.",
    ),
    Case(
        name="tokenizer a link to itself",
        make=link("model/tokenizer.json", "tokenizer.json"),
        command=PLANT,
        said="model has no tokenizer.json. Save the model's fast tokenizer into the folder.",
    ),
    Case(
        name="tokenizer larger than the embedding",
        make=tensor("transformer.wte.weight", lambda weight: weight[:100]),
        command=HARDEN,
        said=NO_MODEL,
    ),
    Case(
        name="tokenizer larger than embedding and configuration",
        make=both(
            tensor("transformer.wte.weight", lambda weight: weight[:100]), change("model/config.json", vocab_size=100)
        ),
        command=HARDEN,
        said="model: the tokenizer has 400 tokens, the model embeds 100. Save the tokenizer that belongs to this "
        "model.",
    ),
    Case(
        name="tokenizer with two tokens of one number",
        make=same_number,
        command=AUDIT,
        said="model: the tokenizer has two tokens of one number. Save the tokenizer again.",
    ),
    Case(
        name="a link to itself for a model",
        make=link("loop", "loop"),
        command=line("harden loop --data corpus.txt -o out"),
        said="loop is no folder. Give a model folder as save_pretrained writes it; nothing is downloaded by name.",
    ),
    Case(
        name="two links in a circle for a model",
        make=both(link("a", "b"), link("b", "a")),
        command=line("audit-canary a --canary 493021"),
        said="a is no folder. Give a model folder as save_pretrained writes it; nothing is downloaded by name.",
    ),
    Case(
        name="a name of 5,000 letters for a model",
        make=nothing,
        command=("harden", "m" * 5000, "--data", "corpus.txt", "-o", "out"),
        said="mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
        "… cannot be used (File name too long). Check the path and its permissions.",
    ),
    Case(
        name="a name of two lines for a model",
        make=nothing,
        command=("harden", "a\nb\x1b[2J", "--data", "corpus.txt", "-o", "out"),
        said="a\\nb\\x1b[2J is no folder. Give a model folder as save_pretrained writes it; nothing is downloaded by "
        "name.",
    ),
    Case(
        name="adapter of a model that is not there",
        make=adapter(base_model_name_or_path="nowhere"),
        command=line("harden adapter --data corpus.txt -o out -q"),
        said="adapter adapts the model nowhere, which is not at hand. Put that model's folder beside the "
        "adapter's, or name it in adapter_config.json.",
    ),
    Case(
        name="adapter of another kind",
        make=adapter(peft_type="PREFIX_TUNING"),
        command=line("audit-canary adapter --canary 493021"),
        said="adapter is an adapter of type PREFIX_TUNING. Give a LoRA adapter.",
    ),
    Case(
        name="adapter that runs code",
        make=adapter(auto_map={"A": "evil.A"}),
        command=line("harden adapter --data corpus.txt -o out -q"),
        said="adapter/adapter_config.json asks for code of its own (auto_map), which is never run. Give a model "
        "whose architecture transformers knows.",
    ),
    Case(
        name="adapter of nothing that the model has",
        make=adapter(),
        command=line("harden adapter --data corpus.txt -o out -q"),
        said="adapter lacks 4 of the adapter's tensors, "
        "base_model.model.transformer.h.0.attn.c_attn.lora_A.default.weight among them. Copy or save the "
        "adapter again.",
    ),
    Case(
        name="adapter of a rank below zero",
        make=adapter(r=-1),
        command=line("harden adapter --data corpus.txt -o out -q"),
        said="adapter cannot be loaded as an adapter of model (ValueError). Check that peft loads it: "
        "PeftModel.from_pretrained.",
    ),
    Case(
        name="adapter as a pickle",
        make=both(
            adapter(),
            lambda place: (place / "adapter/adapter_model.safetensors").rename(place / "adapter/adapter_model.bin"),
        ),
        command=line("harden adapter --data corpus.txt -o out -q"),
        said="adapter has no adapter_model.safetensors. Save the adapter as safetensors.",
    ),
)
