"""Quantised checkpoints: the numbers that their weights stand for, against the library that made them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.hashes import seal_of
from atdp_cli.model.quantised import dequantised
from examples.experiments.rounding import write_rounded
from tests.quantised import WIDTHS, quantise, weight_only, write_llama

pytest.importorskip("torchao", reason="torchao is not installed: make test-quantised")


@dataclass(frozen=True, kw_only=True)
class Version:
    """A folder, and the model that torchao runs."""

    folder: Path
    model: Any


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    return write_llama(tmp_path_factory.mktemp("llama") / "fp32", lines)


@pytest.fixture(scope="module", params=WIDTHS)
def version(request: pytest.FixtureRequest, llama: Path) -> Version:
    out = llama.parent / request.param
    return Version(folder=out, model=quantise(llama, out, weight_only(request.param)))


@pytest.fixture
def copy(version: Version, tmp_path: Path) -> Path:
    return Path(shutil.copytree(version.folder, tmp_path / "copy"))


def test_what_is_loaded_computes_what_the_quantised_model_does(version: Version, llama: Path) -> None:
    loaded = load_checkpoint(version.folder, audited=True)
    ids = torch.randint(0, 400, (4, 60), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        ours, theirs, before = (
            model(ids).logits for model in (loaded.model, version.model, load_checkpoint(llama).model)
        )
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert (before - theirs).abs().max() > 1e-3
    assert loaded.stored_dtype == "float32"


def test_every_number_is_the_librarys(version: Version) -> None:
    """Zero points too: torchao writes one for every block."""
    ours = dequantised(version.folder)
    theirs = version.model.state_dict()
    quantised = [name for name, tensor in theirs.items() if type(tensor) is not torch.Tensor]
    assert len(quantised) == 2 * 7
    for name in quantised:
        assert torch.equal(ours[name], theirs[name].dequantize())


def test_experiments_round_as_the_library_does(version: Version, llama: Path, tmp_path: Path) -> None:
    if version.folder.name != "int8":
        pytest.skip("experiments round to int8 alone")
    rounded = load_checkpoint(write_rounded(llama, tmp_path / "rounded")).model.state_dict()
    for name, tensor in version.model.state_dict().items():
        other = tensor if type(tensor) is torch.Tensor else tensor.dequantize()
        torch.testing.assert_close(rounded[name], other, rtol=1e-6, atol=1e-7)


def test_all_that_was_read_is_sealed(version: Version) -> None:
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(seal_of(version.folder))


def test_nothing_but_an_audit_loads_it(version: Version) -> None:
    with pytest.raises(InputError, match="says that the weights are quantised"):
        load_checkpoint(version.folder)


def rewritten(folder: Path, change: Callable[[dict[str, torch.Tensor], dict[str, Any]], None]) -> None:
    """The file of weights with other tensors, or other JSON about them."""
    path = folder / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - a handle
        reported = {name: json.loads(text) if "." in name else text for name, text in file.metadata().items()}
    change(tensors, reported)
    save_file(
        tensors, path, {name: text if isinstance(text, str) else json.dumps(text) for name, text in reported.items()}
    )


Q = "model.layers.0.self_attn.q_proj"


def data(**changes: Any) -> Callable[[dict[str, torch.Tensor], dict[str, Any]], None]:
    return lambda tensors, reported: reported[f"{Q}.weight"]["_data"].update(changes)


def reported(**changes: Any) -> Callable[[dict[str, torch.Tensor], dict[str, Any]], None]:
    return lambda tensors, said: said[f"{Q}.weight"].update(changes)


def stored(name: str, make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return lambda tensors, said: tensors.update({f"{Q}.{name}": make(tensors[f"{Q}._weight_qdata"])})


DAMAGED: dict[str, tuple[Any, str]] = {
    "another layout": (reported(_type="Int4Tensor"), "packed for one kernel"),
    "a layout of its own": (reported(_type="Evil"), "packed for one kernel"),
    "rounded activations": (
        data(act_quant_kwargs={"granularity": "row"}, activation_quantization="int8_asym_per_token"),
        "rounds activations",
    ),
    "scaled activations": (reported(_tensor_data_names=["qdata", "scale", "act_pre_scale"]), "rounds activations"),
    "no data": (reported(_data=None), "no readable quantised"),
    "a list": (lambda tensors, said: said.update({f"{Q}.weight": []}), "no readable quantised"),
    "no JSON": (lambda tensors, said: said.update({f"{Q}.weight": "{"}), "no readable quantised"),
    "no names": (reported(_tensor_data_names="qdata"), "no readable quantised"),
    "a block of 0": (data(block_size=[1, 0]), "no readable quantised"),
    "a block that does not fit": (data(block_size=[1, 31]), "no readable quantised"),
    "a block of one axis": (data(block_size=[32]), "no readable quantised"),
    "too few scales": (data(block_size=[1, 1]), "no readable quantised"),
    "floats": (stored("_weight_qdata", torch.Tensor.float), "no readable quantised"),
    "no scale": (lambda tensors, said: tensors.pop(f"{Q}._weight_scale"), "no readable quantised"),
    "the weights as well": (stored("weight", torch.Tensor.float), "no readable quantised"),
    "scales without end": (
        lambda tensors, said: tensors[f"{Q}._weight_scale"].fill_(float("inf")),
        "not finite numbers",
    ),
    "no word of it": (lambda tensors, said: said.pop(f"{Q}.weight"), "lacks 1 of the model's tensors"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_or_not_weights_alone_is_refused_in_one_line(copy: Path, name: str) -> None:
    change, said = DAMAGED[name]
    rewritten(copy, change)
    with pytest.raises(InputError, match=said) as refused:
        load_checkpoint(copy, audited=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantised by bitsandbytes"),
        ({"quantization_config": ["torchao"]}, "quantised by None"),
        ({"quantization_config": {"quant_method": "torchao", "auto_map": {"a": "b"}}}, "auto_map"),
        ({"text_config": {"quantization_config": {"quant_method": "torchao"}}}, "says that the weights are quantised"),
    ],
)
def test_other_quantisers_are_refused(copy: Path, changes: dict[str, Any], said: str) -> None:
    path = copy / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=said):
        load_checkpoint(copy, audited=True)
