"""Weights that a folder holds and the model does not use: what an audit passes is all that the folder holds.

Each attack hides what was learnt where this loader does not look, and another loader, or another setting, does.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from atdp_cli.errors import InputError
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.checkpoint import load_checkpoint

Attack = Callable[[Path], object]
Tensors = dict[str, torch.Tensor]

SMALL = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


def write_model(folder: Path, tokenizer_of: Path, architecture: str, **changes: Any) -> Path:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_of)
    config = getattr(transformers, f"{architecture}Config")(vocab_size=len(tokenizer), **SMALL | changes)
    torch.manual_seed(0)
    getattr(transformers, f"{architecture}ForCausalLM")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    """A model of each shape that is attacked, and an adapter of one of them."""
    root = tmp_path_factory.mktemp("originals")
    shutil.copytree(checkpoint_folder, root / "gpt2")
    write_model(root / "qwen3", checkpoint_folder, "Qwen3", head_dim=8)
    write_model(root / "gemma2", checkpoint_folder, "Gemma2", head_dim=8)
    write_model(root / "granite", checkpoint_folder, "Granite")
    write_model(root / "mixtral", checkpoint_folder, "Mixtral", num_local_experts=2, num_experts_per_tok=1)
    adapted = add_adapter(load_checkpoint(checkpoint_folder).model, 2)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    adapted.save_pretrained(root / "adapter")
    edit(root / "adapter", base_model_name_or_path=str(root / "gpt2"))
    return root


def edit(folder: Path, **changes: Any) -> None:
    path = next(path for name in ("adapter_config.json", "config.json") if (path := folder / name).is_file())
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def weights(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


def changed(change: Callable[[Tensors], object]) -> Attack:
    def attack(folder: Path) -> None:
        tensors = load_file(weights(folder))
        change(tensors)
        save_file({name: tensor.clone() for name, tensor in tensors.items()}, weights(folder), {"format": "pt"})

    return attack


def edited(**changes: Any) -> Attack:
    return lambda folder: edit(folder, **changes)


def added(name: str, like: str) -> Attack:
    return changed(lambda tensors: tensors.update({name: tensors[like] + 1}))


def sharded(folder: Path, *, twice: bool, first: bool = True, listed: bool = True) -> None:
    """Two shards, of which one holds a tensor that the index does not say it has."""
    tensors = load_file(weights(folder))
    weights(folder).unlink()
    names = sorted(tensors)
    halves = [{name: tensors[name] for name in names[::2]}, {name: tensors[name] for name in names[1::2]}]
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {name: file for half, file in zip(halves, files, strict=True) for name in half}
    if twice:
        moved = names[1] if first else names[0]
        halves[0 if first else 1][moved] = tensors[moved] + 1
    if not listed:
        halves[0]["hidden.weight"] = tensors[names[0]] + 1
    for half, file in zip(halves, files, strict=True):
        save_file(half, folder / file, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def index_with_another_place(folder: Path) -> None:
    sharded(folder, twice=False)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    files = sorted(set(index["weight_map"].values()))
    index["weight_map"] = {name: files[file == files[0]] for name, file in index["weight_map"].items()}
    path.write_text(json.dumps(index))


def two_sets_of_weights(folder: Path) -> None:
    """The loader reads the one file, others read what the index names."""
    whole = weights(folder).read_bytes()
    sharded(folder, twice=False)
    (folder / "model.safetensors").write_bytes(whole)


BODY = "transformer.h.0.mlp.c_fc.weight"
A = "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight"

STORED: dict[str, tuple[str, Attack]] = {
    "in two shards, the first last": ("gpt2", lambda folder: sharded(folder, twice=True)),
    "in two shards, the last last": ("gpt2", lambda folder: sharded(folder, twice=True, first=False)),
    "in a shard and not in the index": ("gpt2", lambda folder: sharded(folder, twice=False, listed=False)),
    "in another shard than the index says": ("gpt2", index_with_another_place),
    "in one file and in shards": ("gpt2", two_sets_of_weights),
    "with and without the body's name": ("gpt2", added("h.0.mlp.c_fc.weight", BODY)),
    "with the body's name twice": ("gpt2", added(f"transformer.{BODY}", BODY)),
    "under a foreign name": ("gpt2", added("h.0.mlp.original.weight", BODY)),
    "as a head of its own": ("gpt2", added("second_head.weight", "transformer.wte.weight")),
    "as another model": ("gpt2", added("model.layers.0.mlp.up_proj.weight", BODY)),
    "in fewer layers": ("gpt2", edited(n_layer=1)),
    "in no layer": ("gpt2", edited(n_layer=0)),
    "in no layer, of a Qwen": ("qwen3", edited(num_hidden_layers=0, layer_types=[])),
    "in norms that a type leaves unread": ("qwen3", edited(model_type="qwen2", architectures=["Qwen2ForCausalLM"])),
    "in norms that Llama leaves unread": ("qwen3", edited(model_type="llama", architectures=["LlamaForCausalLM"])),
    "in norms that Gemma leaves unread": ("gemma2", edited(model_type="gemma", architectures=["GemmaForCausalLM"])),
    "in an expert too many": ("mixtral", edited(num_local_experts=1)),
    "in layers of no weight": ("granite", edited(residual_multiplier=0.0)),
    "in layers of next to no weight": ("granite", edited(residual_multiplier=1e-30)),
    "in an embedding of no weight": ("granite", edited(embedding_multiplier=0)),
    "behind a norm of no weight": ("qwen3", edited(rms_norm_eps=1e12)),
    "in an adapter of no weight": ("adapter", edited(lora_alpha=0)),
    "in an adapter of next to no weight": ("adapter", edited(lora_alpha=1e-9)),
    "in an adapter of no weight, by layer": ("adapter", edited(alpha_pattern={"c_attn": 0})),
    "in an adapter's layers that are not transformed": (
        "adapter",
        edited(layers_to_transform=[1], target_modules=["c_attn", "c_fc"]),
    ),
    "in modules that are not targets": ("adapter", edited(target_modules=["c_attn"])),
    "in modules that are excluded": ("adapter", edited(exclude_modules=["c_fc"])),
    "in an adapter of another name": ("adapter", added(A.replace("lora_A", "lora_A.other"), A)),
    "in an adapter's foreign tensor": ("adapter", added("base_model.model.hidden.lora_A.weight", A)),
    "in an adapter's tensor without its prefix": ("adapter", added(A.removeprefix("base_model.model."), A)),
    "in an adapter that replaces the base": ("adapter", added("base_model.model.transformer.wte.weight", A)),
}


@pytest.mark.parametrize("name", STORED)
def test_a_tensor_that_the_model_does_not_use_is_refused_in_one_line(
    originals: Path, tmp_path: Path, name: str
) -> None:
    which, attack = STORED[name]
    folder = Path(shutil.copytree(originals / which, tmp_path / "model"))
    load_checkpoint(folder)
    attack(folder)
    with pytest.raises(InputError) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)


def as_published(folder: Path) -> None:
    """GPT-2's masks, without the body's name."""
    changed(
        lambda tensors: tensors.update(
            {f"transformer.h.{i}.attn.{name}": torch.ones(1, 1, 64, 64) for i in (0, 1) for name in ("bias",)}
            | {f"transformer.h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in (0, 1)}
        )
    )(folder)


def as_published_long_ago(folder: Path) -> None:
    changed(
        lambda tensors: tensors.update(
            {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.ones(4) for i in (0, 1)}
        )
    )(folder)


def tied_and_stored(folder: Path) -> None:
    changed(lambda tensors: tensors.update({"lm_head.weight": tensors["transformer.wte.weight"]}))(folder)


HONEST: dict[str, tuple[str, Attack]] = {
    "masks of attention": ("gpt2", as_published),
    "frequencies of positions": ("qwen3", as_published_long_ago),
    "a tied head": ("gpt2", tied_and_stored),
    "shards": ("gpt2", lambda folder: sharded(folder, twice=False)),
    "an adapter of a few modules": ("adapter", edited(lora_alpha=1, use_rslora=True)),
    "a small multiplier": ("granite", edited(residual_multiplier=0.22, embedding_multiplier=12.0)),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_people_have_is_still_loaded(originals: Path, tmp_path: Path, name: str) -> None:
    which, change = HONEST[name]
    folder = Path(shutil.copytree(originals / which, tmp_path / "model"))
    change(folder)
    load_checkpoint(folder)
