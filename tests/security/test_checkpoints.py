"""What is checked of a checkpoint is what is loaded: attacks on a hardened model's folder, none of which is believed.

Each takes a folder that `account` and `audit-canary` accept, and changes what transformers or peft would load.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from atdp_cli.cli.app import run
from tests.cli.conftest import Atdp, Leaky, atdp, fixed_manifest, leaky

__all__ = ["atdp", "fixed_manifest", "leaky"]

Attack = Callable[["Place"], None]

QUICK = [
    "--recipe",
    "dp-sgd",
    "--epochs",
    "1",
    "--set",
    "run.max-records=60",
    "--tier",
    "low-entity",
    "--set",
    "run.store=none",
    "-q",
]


@dataclass(frozen=True)
class Place:
    """Copies to attack.

    Attributes:
        model: A hardened model, with its ledger.
        adapter: A hardened LoRA adapter of `base`.
        leaking: A model of the same shape that learnt its canaries by heart.
    """

    model: Path
    adapter: Path
    base: Path
    leaking: Path

    def edit(self, folder: Path, file: str, **changes: Any) -> None:
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path, corpus: Path, leaky: Leaky) -> Place:
    root = tmp_path_factory.mktemp("originals")
    moved = root / "elsewhere" / "base"
    shutil.copytree(checkpoint_folder, moved)
    for out, more in (("model", []), ("adapter", ["--lora-rank", "2"])):
        command = ["harden", moved, "--data", corpus, "-o", root / out, *QUICK, *more]
        assert run([str(part) for part in command]) == 0
    moved.rename(root / "base")
    shutil.copytree(leaky.model, root / "leaking")
    return Place(root / "model", root / "adapter", root / "base", root / "leaking")


@pytest.fixture
def place(tmp_path: Path, originals: Place) -> Place:
    """The adapter's base is found beside it: what its settings name was moved away."""
    names = ("model", "adapter", "base", "leaking")
    for name in names:
        shutil.copytree(originals.model.parent / name, tmp_path / name)
    return Place(*(tmp_path / name for name in names))


def other_weights(named: str) -> Attack:
    """config.json has transformers load another file than model.safetensors."""

    def attack(place: Place) -> None:
        other = place.model / named
        other.parent.mkdir(exist_ok=True)
        shutil.copy(place.leaking / "model.safetensors", other)
        place.edit(place.model, "config.json", transformers_weights=named)

    return attack


def index_outside(place: Place) -> None:
    import torch

    torch.save({}, place.model.parent / "outside.bin")
    index = {"weight_map": {"transformer.wte.weight": "../outside.bin"}}
    (place.model / "evil.safetensors.index.json").write_text(json.dumps(index))
    place.edit(place.model, "config.json", transformers_weights="evil.safetensors.index.json")


def renamed_attribute(place: Place) -> None:
    """The setting under a name of its own, by transformers' own map of names."""
    shutil.copy(place.leaking / "model.safetensors", place.model / "other.safetensors")
    settings = {"attribute_map": {"transformers_weights": "n_other"}, "n_other": "other.safetensors"}
    place.edit(place.model, "config.json", **settings)


def unsealed_weights(place: Place) -> None:
    shutil.copy(place.leaking / "model.safetensors", place.model / "model.safetensors")


def weights_by_a_link(place: Place) -> None:
    (place.model / "model.safetensors").unlink()
    (place.model / "model.safetensors").symlink_to(place.leaking / "model.safetensors")


def adapter_beside(place: Place) -> None:
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(place.adapter / name, place.model / name)


def adapter_beside_by_a_link(place: Place) -> None:
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (place.model / name).symlink_to(place.adapter / name)


def adapter_settings_alone(place: Place) -> None:
    shutil.copy(place.adapter / "adapter_config.json", place.model)


def other_tokenizer_file(place: Place) -> None:
    swapped_digits(place.model / "tokenizer.json", place.model / "tokenizer.5.0.0.json")
    place.edit(place.model, "tokenizer_config.json", fast_tokenizer_files=["tokenizer.5.0.0.json"])


def swapped_digits(source: Path, target: Path) -> None:
    """A tokenizer that takes 3 for 7."""
    tokenizer = json.loads(source.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["3"], vocabulary["7"] = vocabulary["7"], vocabulary["3"]
    target.write_text(json.dumps(tokenizer))


def edited(file: str, **changes: Any) -> Attack:
    return lambda place: place.edit(place.model, file, **changes)


def written(file: str, text: str) -> Attack:
    def attack(place: Place) -> None:
        path = place.model / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return attack


def deleted(file: str) -> Attack:
    return lambda place: (place.model / file).unlink()


def twice(place: Place) -> None:
    path = place.model / "config.json"
    path.write_text(path.read_text().replace("{", '{"n_head": 1, ', 1))


def index_beside(place: Place) -> None:
    names = load_file(place.model / "model.safetensors")
    shutil.copy(place.leaking / "model.safetensors", place.model / "shard.safetensors")
    index = {"weight_map": dict.fromkeys(names, "shard.safetensors")}
    (place.model / "model.safetensors.index.json").write_text(json.dumps(index))


OF_THE_MODEL: dict[str, Attack] = {
    "other weights": other_weights("other.safetensors"),
    "other weights in a folder": other_weights("sub/other.safetensors"),
    "other weights with an adapter's name": other_weights("adapter_model.safetensors"),
    "an index that leads outside": index_outside,
    "other weights by a renamed attribute": renamed_attribute,
    "weights exchanged": unsealed_weights,
    "weights by a link": weights_by_a_link,
    "an index beside the weights": index_beside,
    "an adapter beside the model": adapter_beside,
    "an adapter beside the model, by a link": adapter_beside_by_a_link,
    "an adapter's settings beside the model": adapter_settings_alone,
    "another tokenizer's file": other_tokenizer_file,
    "a digit for another": lambda place: swapped_digits(place.model / "tokenizer.json", place.model / "tokenizer.json"),
    "a token more": written("added_tokens.json", '{"7 3": 400}'),
    "special tokens": written("special_tokens_map.json", '{"eos_token": "3"}'),
    "the tokenizer's settings": edited("tokenizer_config.json", clean_up_tokenization_spaces=True),
    "a chat template": written("chat_template.jinja", "{{ messages }}"),
    "a further chat template": written("additional_chat_templates/tool.jinja", "{{ messages }}"),
    "heads": edited("config.json", n_head=1),
    "the activation": edited("config.json", activation_function="relu"),
    "a large epsilon in the norms": edited("config.json", layer_norm_epsilon=1e9),
    "attention by layer": edited("config.json", scale_attn_by_inverse_layer_idx=True),
    "an untied head": edited("config.json", tie_word_embeddings=False),
    "generation": edited("generation_config.json", suppress_tokens=[3]),
    "no generation": deleted("generation_config.json"),
    "no tokenizer's settings": deleted("tokenizer_config.json"),
    "a setting twice": twice,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", OF_THE_MODEL)
def test_an_altered_model_has_no_epsilon(place: Place, atdp: Atdp, name: str) -> None:
    assert atdp("account", place.model).code == 0
    OF_THE_MODEL[name](place)
    ended = atdp("account", place.model)
    assert ended.code == 2
    assert "ε" not in ended.out
    assert ended.err.count("\n") <= 3


OF_THE_ADAPTER: dict[str, Attack] = {}


def attacks(name: str) -> Callable[[Attack], Attack]:
    def add(attack: Attack) -> Attack:
        OF_THE_ADAPTER[name] = attack
        return attack

    return add


@attacks("the base's weights")
def _(place: Place) -> None:
    shutil.copy(place.leaking / "model.safetensors", place.base / "model.safetensors")


@attacks("the base's settings")
def _(place: Place) -> None:
    place.edit(place.base, "config.json", n_head=1)


@attacks("another base by its name")
def _(place: Place) -> None:
    place.edit(place.adapter, "adapter_config.json", base_model_name_or_path=str(place.leaking))


@attacks("another base by a link")
def _(place: Place) -> None:
    shutil.rmtree(place.base)
    place.base.symlink_to(place.leaking)


@attacks("other weights in the base's settings")
def _(place: Place) -> None:
    shutil.copy(place.leaking / "model.safetensors", place.base / "other.safetensors")
    place.edit(place.base, "config.json", transformers_weights="other.safetensors")


@attacks("an adapter without effect")
def _(place: Place) -> None:
    place.edit(place.adapter, "adapter_config.json", lora_alpha=1e-9)


@attacks("an adapter with more effect in a layer")
def _(place: Place) -> None:
    place.edit(place.adapter, "adapter_config.json", alpha_pattern={"c_attn": 1e6})


@attacks("an adapter that changes its base")
def _(place: Place) -> None:
    place.edit(place.adapter, "adapter_config.json", init_lora_weights="olora")


@attacks("an adapter that repeats layers")
def _(place: Place) -> None:
    place.edit(place.adapter, "adapter_config.json", layer_replication=[[0, 2], [0, 2]])


@attacks("an adapter of other weights")
def _(place: Place) -> None:
    path = place.adapter / "adapter_model.safetensors"
    save_file({name: 2 * tensor for name, tensor in load_file(path).items()}, path)


@attacks("the tokenizer")
def _(place: Place) -> None:
    swapped_digits(place.adapter / "tokenizer.json", place.adapter / "tokenizer.json")


@attacks("a configuration beside the adapter's")
def _(place: Place) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(place.leaking / name, place.adapter / name)


@pytest.mark.parametrize("name", OF_THE_ADAPTER)
def test_an_altered_adapter_or_base_has_no_epsilon(place: Place, atdp: Atdp, name: str) -> None:
    assert atdp("account", place.adapter).code == 0
    OF_THE_ADAPTER[name](place)
    ended = atdp("account", place.adapter)
    assert ended.code == 2
    assert "ε" not in ended.out


LOADED = [name for name in OF_THE_MODEL if name.startswith(("other weights", "an index", "an adapter", "another tok"))]


@pytest.mark.parametrize("name", LOADED)
def test_an_audit_refuses_what_would_load_something_else(place: Place, atdp: Atdp, leaky: Leaky, name: str) -> None:
    """No verdict, whether the folder has a ledger or not."""
    OF_THE_MODEL[name](place)
    if name == "an index beside the weights":
        (place.model / "model.safetensors").rename(place.model / "model.bin")
        (place.model / "shard.safetensors").unlink()
    ended = atdp("audit-canary", place.model, "--manifest", leaky.manifest)
    assert ended.code == 2
    assert "PASS" not in ended.out


def test_an_audit_records_all_that_it_read(place: Place, atdp: Atdp, leaky: Leaky) -> None:
    def hashes(folder: Path) -> dict[str, str]:
        [model] = atdp("audit-canary", folder, "--manifest", leaky.manifest, "--json").json["models"]
        actual: dict[str, str] = model["weights"]
        return actual

    whole, adapted = hashes(place.model), hashes(place.adapter)
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} < set(whole)
    assert {"adapter_config.json", "adapter_model.safetensors", "base/config.json"} < set(adapted)
    place.edit(place.model, "config.json", layer_norm_epsilon=1e-3)
    place.edit(place.base, "config.json", layer_norm_epsilon=1e-3)
    assert {name for name, digest in hashes(place.model).items() if whole[name] != digest} == {"config.json"}
    assert {name for name, digest in hashes(place.adapter).items() if adapted[name] != digest} == {"base/config.json"}


def imports_a_module(place: Place) -> None:
    (place.adapter / "adapter_config.json").write_text(
        json.dumps(
            json.loads((place.adapter / "adapter_config.json").read_text())
            | {"megatron_config": {"a": 1}, "megatron_core": "this"}
        )
    )


REFUSED: dict[str, Attack] = {
    "a module of its own": imports_a_module,
    "an adapter that changes its base": OF_THE_ADAPTER["an adapter that changes its base"],
    "an adapter that repeats layers": OF_THE_ADAPTER["an adapter that repeats layers"],
    "a configuration beside the adapter's": OF_THE_ADAPTER["a configuration beside the adapter's"],
    "other weights in the base's settings": OF_THE_ADAPTER["other weights in the base's settings"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_command_loads_such_an_adapter(
    place: Place, corpus: Path, atdp: Atdp, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    for path in place.adapter.glob("privacy_*"):
        path.unlink()
    REFUSED[name](place)
    ended = atdp("harden", place.adapter, "--data", corpus, "-o", place.model.parent / "out", *QUICK)
    assert ended.code == 2
    assert "Zen of Python" not in ended.out
    assert not (place.model.parent / "out").exists()


@pytest.mark.ci
def test_what_an_adapters_base_has_learnt_is_inherited(place: Place, corpus: Path, atdp: Atdp) -> None:
    """An adapter without a ledger, of a base with one: nobody knows what trained the adapter."""
    for path in place.adapter.glob("privacy_*"):
        path.unlink()
    shutil.copytree(place.leaking, place.base, dirs_exist_ok=True)
    out = place.model.parent / "out"
    reported = atdp("harden", place.adapter, "--data", corpus, "-o", out, *QUICK)
    assert reported.code == 0, reported.err
    ledger = json.loads((out / "privacy_ledger.json").read_text())
    assert ledger["checkpoint_history"] == "unknown"
    assert ledger["events"][0]["kind"] == "plain"
    refused = atdp("harden", place.adapter, "--data", corpus, "-o", f"{out}2", *QUICK, "--checkpoint-history", "public")
    assert refused.code == 2


def test_a_ledger_of_an_adapter_that_does_not_seal_its_base_is_refused(place: Place, atdp: Atdp) -> None:
    from atdp_cli.privacy.ledger import LEDGER_FILE, read_ledger, write_ledger

    path = place.adapter / LEDGER_FILE
    new = read_ledger(path)
    assert atdp("account", place.adapter, "--json").json["scope"] == "increment"
    write_ledger(path, new.model_copy(update={"checkpoint_history": "public"}))
    assert atdp("account", place.adapter, "--json").json["scope"] == "end_to_end"
    own = {name: digest for name, digest in new.seal.items() if not name.startswith("base/")}
    write_ledger(path, new.model_copy(update={"checkpoint_history": "public", "seal": own}))
    assert atdp("account", place.adapter).code == 2


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_a_link_to_a_regular_file_is_followed(place: Place, atdp: Atdp, file: str) -> None:
    """As in the cache of a hub, where every file is one."""
    store = place.model.parent / "blobs"
    store.mkdir()
    (place.model / file).rename(store / "0123")
    (place.model / file).symlink_to(store / "0123")
    assert atdp("account", place.model).code == 0


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "generation_config.json", "tokenizer.json"])
def test_a_file_that_is_none_is_refused_at_once(place: Place, atdp: Atdp, leaky: Leaky, file: str) -> None:
    (place.model / file).unlink()
    os.mkfifo(place.model / file)
    for command in (["account", place.model], ["audit-canary", place.model, "--manifest", leaky.manifest]):
        assert atdp(*command).code == 2
