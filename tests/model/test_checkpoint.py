"""Checkpoints: what is refused before anything is loaded, and that what is saved loads again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from atdp_cli.model.folder import check_folder, stored_dtype


@pytest.fixture
def folder(checkpoint_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint_folder, tmp_path / "model"))


def change_config(folder: Path, **values: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def poison(tensors: dict[str, torch.Tensor]) -> None:
    tensors["transformer.h.0.attn.c_attn.weight"][3, 4] = float("nan")


def shrunken(folder: Path) -> None:
    change_config(folder, vocab_size=300)
    change_weights(folder, lambda t: t.update({"transformer.wte.weight": t["transformer.wte.weight"][:300]}))


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def truncated(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def indexed(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))

    return change


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such folder": (shutil.rmtree, "is no folder"),
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "config.json"),
    "configuration not JSON": (lambda folder: (folder / "config.json").write_text("{"), "not valid JSON"),
    "configuration a list": (lambda folder: (folder / "config.json").write_text("[]"), "no JSON object"),
    "remote code": (lambda folder: change_config(folder, auto_map={"AutoModel": "evil.Model"}), "auto_map"),
    "unknown architecture": (lambda folder: change_config(folder, model_type="nothing"), "cannot be loaded"),
    "other shape": (lambda folder: change_config(folder, n_embd=36), "cannot be loaded"),
    "pickle": (pickled, "pickle, which is never loaded"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors"),
    "truncated": (truncated, "not a whole safetensors file"),
    "empty file": (lambda folder: (folder / "model.safetensors").write_bytes(b""), "not a whole safetensors file"),
    "no tensors": (lambda folder: change_weights(folder, dict.clear), "no tensors"),
    "missing tensor": (lambda folder: change_weights(folder, lambda t: t.pop("transformer.ln_f.weight")), "lacks"),
    "NaN": (lambda folder: change_weights(folder, poison), "not finite"),
    "index names a missing shard": (indexed("model-00001-of-00002.safetensors"), "not in the folder"),
    "index leaves the folder": (indexed("../model.safetensors"), "not in the folder"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
    "damaged tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer cannot be read"),
    "more tokens than rows": (shrunken, "the tokenizer has"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_in_one_line(folder: Path, name: str) -> None:
    damage, said = DAMAGE[name]
    damage(folder)
    with pytest.raises(InputError) as caught:
        load_checkpoint(folder)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pickle_given_as_the_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"\x80\x04")
    with pytest.raises(InputError, match="never loaded"):
        check_folder(tmp_path / "model.pt")


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_what_is_saved_loads_again_in_its_dtype(folder: Path, tmp_path: Path, name: str) -> None:
    loaded = load_checkpoint(folder)
    before = {key: tensor.clone() for key, tensor in loaded.model.state_dict().items()}
    save_checkpoint(loaded.model, loaded.tokenizer, tmp_path / "saved", name)
    assert stored_dtype(tmp_path / "saved") == name
    again = load_checkpoint(tmp_path / "saved")
    assert again.stored_dtype == name
    assert not again.model.training
    for key, tensor in again.model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, before[key].to(getattr(torch, name)).float())
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert plain.get_input_embeddings().weight.data_ptr() == plain.get_output_embeddings().weight.data_ptr()
