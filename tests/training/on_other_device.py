"""Runs whose model is not on the CPU: nothing that it meets is left behind there, and what it computes is the same.

The device is that of `tests.otherdevice`, which refuses to mix with the CPU as a GPU does. It must exist before the
process computes its first gradient, and torch cannot forget it, so `test_device.py` runs this file in a process of its
own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from atdp_cli.hardening import model as harden_model
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.training import noise
from atdp_cli.training.clip import ghost, on_device
from atdp_cli.training.clip.self_check import random_record
from atdp_cli.training.noise import BLOCK, normals
from tests.hardening.conftest import place
from tests.hardening.resumption import Place, broken_up, equal, finished, weights
from tests.otherdevice import counted, register
from tests.training.clipping.models import build

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


def test_normals_elsewhere_are_made_of_chacha20s_stream() -> None:
    stream = insecure_stream(1, "test")
    stream.skip(3)
    there = normals(stream, 7, DEVICE)
    assert there.device == DEVICE
    assert stream.position == 11
    encryptor = Cipher(algorithms.ChaCha20(stream.chacha_key, bytes(16)), mode=None).encryptor()
    bits = np.frombuffer(encryptor.update(bytes(88)), dtype=np.uint64)[3:]
    uniforms = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log(uniforms[:4])), 2 * np.pi * uniforms[4:]
    expected = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))[:7]
    assert there.tolist() == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize("held_bytes", [1, on_device.HELD_BYTES])
@pytest.mark.parametrize("tokens", [64, 512])
def test_a_clipped_sum_elsewhere_is_that_of_the_cpu(
    checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch, held_bytes: int, tokens: int
) -> None:
    monkeypatch.setattr(on_device, "HELD_BYTES", held_bytes)
    model, draw = load_checkpoint(checkpoint_folder).model, np.random.default_rng(0)
    lengths = [[5], [5], [5], [9, 4], [30], [30], [30], [30], [30]]
    records = [random_record(model, draw, shape, weighted=row != 1) for row, shape in enumerate(lengths)]
    clip_norm = float(np.median(ghost.clipped_sum(model, records, 1.0, tokens=512, positions=True).norms))
    here = ghost.clipped_sum(model, records, clip_norm, tokens=512, positions=True)
    there = ghost.clipped_sum(model.to(DEVICE), records, clip_norm, tokens=tokens, positions=True)
    assert there.norms.tolist() == pytest.approx(here.norms.tolist(), rel=1e-5, abs=1e-12)
    for ours, theirs in zip(here.gradient, there.gradient, strict=True):
        assert torch.allclose(theirs.cpu(), ours, rtol=1e-4, atol=1e-6 * clip_norm)


WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal"}
"""Operations whose result the CPU has to know, for which it waits until a GPU has done all before."""


def test_the_clipped_sum_and_the_noise_wait_for_nothing() -> None:
    """But for transformers, which once a forward pass looks for packed sequences in the positions that it made."""
    model, draw = build("Llama").to(DEVICE), np.random.default_rng(0)
    records = [random_record(model, draw, shape) for shape in ([8], [16, 16], [24])]  # a batch each, without a mask
    with counted() as operations:
        clipped = ghost.clipped_sum(model, records, 0.1, tokens=512, positions=False)
        noise.add_noise(clipped.gradient, 1.0, insecure_stream(1, "test"))
    assert len(operations) > 100
    assert [name for name in operations if name in WAITING] == ["_local_scalar_dense"] * len(records)


def with_noise_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise on every device, so that runs can be compared."""
    monkeypatch.setattr(noise, "uniforms", cpus_uniforms)
    monkeypatch.setattr(noise, "_blocks", each_by_itself)


def each_by_itself(parts: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    return [[piece] for part in parts for piece in torch.split(part.view(-1), BLOCK)]


def cpus_uniforms(stream: KeyStream, count: int, device: torch.device | None) -> torch.Tensor:
    return torch.from_numpy(stream.uniforms(count)).to(device or "cpu")


@pytest.mark.parametrize("engine", ["ghost", "per-record"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_elsewhere_gives_the_same_weights(
    place: Place, monkeypatch: pytest.MonkeyPatch, recipe: str, engine: str
) -> None:
    given = settings(place, recipe) | {"clipping": engine}
    here = weights(finished(place.request(recipe, "here", **given)))
    monkeypatch.setattr(harden_model, "find_device", lambda _: DEVICE)
    with_noise_of_the_cpu(monkeypatch)
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
