"""Runs whose model is not on the CPU: nothing that it meets is left behind there, and what it computes is the same.

The device is that of `tests.otherdevice`, which refuses to mix with the CPU as a GPU does. It must exist before the
process computes its first gradient, and torch cannot forget it, so `test_device.py` runs this file in a process of its
own.
"""

from typing import Any

import pytest
import torch

from atdp_cli.jobs.harden import model as harden_model
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from atdp_cli.training import loop, noise
from tests.otherdevice import DeviceTensor, counted, register
from tests.runs.conftest import place
from tests.runs.resumption import Place, broken_up, equal, finished, weights

__all__ = ["place"]

DEVICE = register()

RECIPES = ["atdp", "no-dp", "fitted-decoys", "no-dp+anchored", "no-dp+noise", "no-dp+interpolate"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Where the models of `harden` are, whatever --device says."""
    monkeypatch.setattr(harden_model, "find_device", lambda _: DEVICE)
    return DEVICE


def settings(place: Place, recipe: str) -> dict[str, Any]:
    """What a recipe needs beside its name."""
    if not any(name in recipe for name in ("anchored", "interpolate")):
        return {}
    base = load_checkpoint(place.model)
    with torch.no_grad():
        for parameter in base.model.parameters():
            parameter.mul_(0.9)
    save_checkpoint(base.model, base.tokenizer, place.folder / "base", dtype="float32")
    return {"reference": place.folder / "base"}


@pytest.mark.parametrize("engine", ["bookkeeping", "loop"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_elsewhere_gives_the_same_weights(
    place: Place, monkeypatch: pytest.MonkeyPatch, recipe: str, engine: str
) -> None:
    given = settings(place, recipe) | {"engine": engine}
    here = weights(finished(place.request(recipe, "here", **given)))
    monkeypatch.setattr(harden_model, "find_device", lambda _: DEVICE)
    with counted() as operations:
        there = weights(finished(place.request(recipe, "there", **given)))
    assert here.keys() == there.keys()
    # Attention is computed by other kernels there, and Adam steps either way where a gradient is all but 0.
    close = [torch.isclose(here[name], there[name], atol=1e-5).flatten() for name in here]
    assert float(torch.cat(close).double().mean()) > 0.999
    assert {"addmm", "embedding"} <= set(operations)


@pytest.mark.parametrize("recipe", ["atdp", "no-dp"])
@pytest.mark.usefixtures("elsewhere")
def test_a_run_elsewhere_is_resumed_to_the_bit(place: Place, recipe: str) -> None:
    whole = weights(finished(place.request(recipe, "whole", checkpoint_every=1e-9)))
    result, sessions = broken_up(
        place.request(recipe, "broken", checkpoint_every=1e-9), lambda session: 3 if session == 0 else None
    )
    assert sessions == 1
    assert equal(weights(result), whole) == (recipe == "no-dp")  # repeated steps have fresh noise


@pytest.mark.usefixtures("elsewhere")
def test_noise_on_the_cpu_is_noticed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.normals
    monkeypatch.setattr(noise, "normals", lambda stream, count, device=None: drawn(stream, count))
    with pytest.raises(RuntimeError, match="same device"):
        finished(place.request("atdp"))


@pytest.mark.usefixtures("elsewhere")
def test_a_mask_on_the_cpu_is_noticed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = torch.Tensor.to

    def left_behind(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        mask = tensor.dtype == torch.bool or (tensor.dtype == torch.int64 and set(tensor.flatten().tolist()) == {0, 1})
        return tensor if mask and not isinstance(tensor, DeviceTensor) else moved(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", left_behind)
    with pytest.raises(RuntimeError, match="same device"):
        finished(place.request("no-dp"))


@pytest.mark.usefixtures("elsewhere")
def test_the_state_of_an_optimizer_on_the_cpu_is_noticed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_behind(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for key, value in tensors.items():
            index, name = key.split(".", 1)
            optimizer.state[parameters[int(index)]][name] = value

    monkeypatch.setattr(loop, "restore_optimizer", left_behind)
    with pytest.raises(RuntimeError, match="same device"):
        broken_up(place.request("no-dp", checkpoint_every=1e-9), lambda session: 3 if session == 0 else None)
