"""Configurations, tokenizers and adapters that lie or ask for code, and folders that are none."""

import json
from pathlib import Path

from tests.cli.badinput.case import Case, Make, both, cases, change, line, link, safetensors, tensor, write

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


NO_JSON = "model/config.json is not valid JSON"
NO_MODEL = "cannot be loaded as a language model (RuntimeError)"

CASES = (
    *cases(
        HARDEN,
        {
            "configuration not UTF-8": (NO_JSON, write("model/config.json", b'{"a": "\xff"}')),
            "configuration nested 100,000 deep": (NO_JSON, write("model/config.json", nested(100_000))),
            "a kernel of the hub": (
                "model/config.json asks for a kernel of the hub",
                change("model/config.json", attn_implementation="kernels-community/evil"),
            ),
            "quantised weights": (
                "model/config.json says that the weights are quantised",
                change("model/config.json", quantization_config={"quant_method": "bitsandbytes"}),
            ),
            "model type a number": (
                "cannot be loaded as a language model (ValueError)",
                change("model/config.json", model_type=7),
            ),
            "layers by the million": (
                "model/config.json says n_layer is 1000000, and the",
                change("model/config.json", n_layer=10**6),
            ),
            "layers below zero": (
                "model/config.json says n_layer is -1, and the weights",
                change("model/config.json", n_layer=-1),
            ),
            "a layer less than the weights have": (
                "model has 11 tensors for which the configuration has no",
                change("model/config.json", n_layer=1),
            ),
            "heads zero": (
                "cannot be loaded as a language model (ZeroDivisionError)",
                change("model/config.json", n_head=0),
            ),
            "width a word": ("cannot be loaded as a language model", change("model/config.json", n_embd="wide")),
            "vocabulary of a billion": (
                "model/config.json describes a model of 32,000,027,520",
                change("model/config.json", vocab_size=10**9),
            ),
            "context below zero": (NO_MODEL, change("model/config.json", n_positions=-5)),
            "tokenizer larger than the embedding": (
                NO_MODEL,
                tensor("transformer.wte.weight", lambda weight: weight[:100]),
            ),
        },
    ),
    *cases(
        AUDIT,
        {
            "code of its own deep in the configuration": (
                "model/config.json asks for code of its own (auto_map)",
                change("model/config.json", text_config={"auto_map": {"AutoConfig": "evil.C"}}),
            ),
            "width of a billion": (NO_MODEL, change("model/config.json", n_embd=10**9)),
            "tokenizer with two tokens of one number": (
                "model: the tokenizer has two tokens of one number",
                same_number,
            ),
        },
    ),
    *cases(
        PLANT,
        {
            "tokenizer of another kind": (
                "model: the tokenizer cannot be read",
                write("model/tokenizer.json", '{"model": {"type": "Magic"}}'),
            ),
            "tokenizer a link to itself": (
                "model has no tokenizer.json",
                link("model/tokenizer.json", "tokenizer.json"),
            ),
        },
    ),
    Case(
        "a link to itself for a model",
        line("harden loop --data corpus.txt -o out"),
        "loop is no folder",
        link("loop", "loop"),
    ),
    *cases(
        line("harden adapter --data corpus.txt -o out -q"),
        {
            "adapter of a model that is not there": (
                "adapter adapts the model nowhere, which is not at hand",
                adapter(base_model_name_or_path="nowhere"),
            ),
            "adapter that runs code": (
                "adapter/adapter_config.json asks for code of its own",
                adapter(auto_map={"A": "evil.A"}),
            ),
            "adapter of nothing that the model has": ("adapter lacks 4 of the adapter's tensors", adapter()),
            "adapter of a rank below zero": ("adapter cannot be loaded as an adapter of model", adapter(r=-1)),
            "adapter as a pickle": (
                "adapter has no adapter_model.safetensors",
                both(
                    adapter(),
                    lambda place: (place / "adapter/adapter_model.safetensors").rename(
                        place / "adapter/adapter_model.bin"
                    ),
                ),
            ),
        },
    ),
    Case(
        "adapter of another kind",
        line("audit-canary adapter --canary 493021"),
        "adapter is an adapter of type PREFIX_TUNING",
        adapter(peft_type="PREFIX_TUNING"),
    ),
)
