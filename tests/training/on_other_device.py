"""Runs whose model is not on the CPU: nothing that it meets is left behind there, and what it computes is the same.

The device is that of `tests.otherdevice`, which refuses to mix with the CPU as a GPU does. It must exist before the
process computes its first gradient, and torch cannot forget it, so `test_device.py` runs this file in a process of its
own.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.hardening import model as harden_model
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.training import noise
from atdp_cli.training.clip import ghost
from atdp_cli.training.clip.self_check import random_record
from atdp_cli.training.noise import COPIED_AT_ONCE, normals
from tests.hardening.conftest import place
from tests.hardening.resumption import Place, broken_up, equal, finished, weights
from tests.otherdevice import counted, register

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


@pytest.mark.parametrize("count", [1, 2, 7, COPIED_AT_ONCE + 3])
def test_normals_elsewhere_are_those_of_the_cpu(count: int) -> None:
    here = normals(insecure_stream(1, "test"), count)
    there = normals(insecure_stream(1, "test"), count, DEVICE)
    assert there.device == DEVICE
    assert torch.equal(there.cpu(), here)


@pytest.mark.parametrize("formed_bytes", [1, ghost.FORMED_BYTES])
def test_a_clipped_sum_elsewhere_is_that_of_the_cpu(
    checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch, formed_bytes: int
) -> None:
    monkeypatch.setattr(ghost, "FORMED_BYTES", formed_bytes)
    model, draw = load_checkpoint(checkpoint_folder).model, np.random.default_rng(0)
    lengths = [[5], [5], [5], [9, 4], [30], [30], [30], [30], [30]]
    records = [random_record(model, draw, shape, weighted=row != 1) for row, shape in enumerate(lengths)]
    clip_norm = float(np.median(ghost.clipped_sum(model, records, 1.0, tokens=512, positions=True).norms))
    here = ghost.clipped_sum(model, records, clip_norm, tokens=512, positions=True)
    there = ghost.clipped_sum(model.to(DEVICE), records, clip_norm, tokens=512, positions=True)
    assert there.norms.tolist() == pytest.approx(here.norms.tolist(), rel=1e-5)
    for ours, theirs in zip(here.gradient, there.gradient, strict=True):
        assert torch.allclose(theirs.cpu(), ours, rtol=1e-4, atol=1e-6 * clip_norm)


@pytest.mark.parametrize("engine", ["ghost", "per-record"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_elsewhere_gives_the_same_weights(
    place: Place, monkeypatch: pytest.MonkeyPatch, recipe: str, engine: str
) -> None:
    given = settings(place, recipe) | {"clipping": engine}
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
