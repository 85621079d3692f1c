"""Noise: Gaussian, independent, of the size asked for, and no seed of torch's reproduces it."""

import math

import pytest
import torch
from scipy import stats

from atdp_cli.privacy.rng import insecure_stream, secure_stream
from atdp_cli.training.noise import BLOCK, add_noise, normals


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_as_many_as_asked_for(count: int) -> None:
    assert normals(secure_stream(), count).shape == (count,)


def test_the_transform_is_box_and_mullers() -> None:
    uniforms = insecure_stream(3, "test").uniforms(6)
    radius = [math.sqrt(-2 * math.log(value)) for value in uniforms[:3]]
    angle = [2 * math.pi * value for value in uniforms[3:]]
    expected = [r * math.cos(a) for r, a in zip(radius, angle, strict=True)]
    expected += [r * math.sin(a) for r, a in zip(radius, angle, strict=True)]
    assert normals(insecure_stream(3, "test"), 6).tolist() == pytest.approx(expected, rel=1e-12)


def test_they_are_standard_normal_and_pairs_are_independent() -> None:
    actual = normals(insecure_stream(3, "test"), 200_000)
    assert stats.kstest(actual.numpy(), "norm").pvalue > 1e-3
    first, second = actual[:100_000], actual[100_000:]
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([first.square(), second.square()]))[0, 1])) < 0.02


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_added_to_every_coordinate(dtype: torch.dtype) -> None:
    start = torch.arange(3 * BLOCK + 5, dtype=dtype).view(-1, 1) / BLOCK
    parts = [start.clone(), torch.zeros(2, 3, dtype=dtype)]
    add_noise(parts, 0.25, insecure_stream(1, "noise"))
    added = (parts[0].double() - start.double()).flatten()
    assert stats.kstest(added.numpy() / 0.25, "norm").pvalue > 1e-3
    assert bool((parts[1] != 0).all())


def test_no_seed_of_torch_reproduces_the_noise() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        part = torch.zeros(4)
        add_noise([part], 1.0, secure_stream())
        drawn.append(part)
    assert not torch.equal(drawn[0], drawn[1])
