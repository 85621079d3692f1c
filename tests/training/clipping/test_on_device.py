"""Norms in fp32: never shorter than the fp64 norm by more than the margin of the clip, for any input."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from atdp_cli.training.clip import on_device
from atdp_cli.training.clip.engine import ROUNDING_MARGIN, clip_factors
from atdp_cli.training.clip.ghost_norm import SUMMED_IN_FP32, EmbeddingUse, InstantiatedUse, LinearUse, Use
from atdp_cli.training.clip.on_device import clip_on_device, form

CASES, RECORDS, C = 10_000, 8, 0.1
KINDS = ("ordinary", "cancelling", "huge", "tiny", "denormal", "spread", "one", "many equal")


def factors(kind: str, shape: Sequence[int], draw: np.random.Generator) -> torch.Tensor:
    """Numbers that are hard to square or to add up in fp32."""
    values = draw.standard_normal(shape)
    match kind:
        case "cancelling":
            values[1::2] = -values[0::2][: len(values[1::2])] * (1 + 1e-6 * draw.standard_normal())
        case "huge":
            values *= 10.0 ** draw.uniform(5, 9)
        case "tiny":
            values *= 10.0 ** draw.uniform(-22, -9)
        case "denormal":
            values *= 10.0 ** draw.uniform(-44, -38)
        case "spread":
            values *= 10.0 ** draw.uniform(-12, 6, shape)
        case "one":
            values *= draw.random(shape) < 0.02
        case "many equal":
            values = np.full(shape, draw.uniform(0.5, 1.5))
    return torch.from_numpy(values.astype(np.float32))


def uses(draw: np.random.Generator) -> tuple[torch.Tensor, list[Use]]:
    """A parameter, and its uses by `RECORDS` records of adversarial numbers."""
    m, n, positions = (int(size) for size in draw.integers(1, 24, 3))
    table, left, right = (draw.choice(KINDS) for _ in range(3))
    used: list[Use] = [
        LinearUse(
            torch.stack([factors(left, (positions, m), draw) for _ in range(RECORDS)]),
            torch.stack([factors(right, (positions, n), draw) for _ in range(RECORDS)]),
        )
    ]
    if draw.random() < 0.5:
        rows = torch.from_numpy(draw.integers(-1, m, (RECORDS, positions)))
        used.append(EmbeddingUse(rows, torch.stack([factors(table, (positions, n), draw) for _ in range(RECORDS)])))
    if draw.random() < 0.3:
        used.append(InstantiatedUse(torch.stack([factors(table, (m, n), draw) for _ in range(RECORDS)])))
    return torch.zeros(m, n), used


def exceeded(norm: Callable[..., torch.Tensor]) -> list[float]:
    """By how much of C records of adversarial inputs add more than they may, where they do."""
    draw, found = np.random.default_rng(0), []
    for _ in range(CASES // RECORDS):
        parameter, used = uses(draw)
        norms = norm({parameter: used}, RECORDS, C, {parameter: torch.zeros(parameter.shape, dtype=torch.float64)})
        formed = form(used, slice(0, RECORDS), parameter).double()
        true = formed.flatten(1).square().sum(1).sqrt()
        added = true * clip_factors(norms, C).float().double()
        found += [float(length) / C - 1 for length in added if length > C]
        assert not bool((~norms.isfinite() & (true < 1e18)).any())
    return found


def test_no_adversarial_record_adds_more_than_c() -> None:
    assert exceeded(clip_on_device) == []


def test_a_norm_that_loses_what_fp32_cannot_hold_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Gram products in fp32, as ghost clipping has them, and by one sum in bf16."""

    def gram(formed: torch.Tensor) -> list[torch.Tensor]:
        flat = formed.flatten(1)
        return [flat.bfloat16().square().sum(1, keepdim=True).float().sqrt()]

    monkeypatch.setattr(on_device, "_short_lengths", gram)
    assert len(exceeded(clip_on_device)) > 100


def test_the_margin_covers_the_bound_of_the_norm() -> None:
    """Sums of 256 squares in fp32, a root, the factor in fp32 and its product: each number of them rounds once."""
    pieces = SUMMED_IN_FP32
    squares = (pieces + 1) * 2.0**-24 / (1 - (pieces + 1) * 2.0**-24)
    norm = math.sqrt(1 + squares) * (1 + 2.0**-24) - 1
    assert (1 + norm) * (1 + 2.0**-24) ** 2 - 1 < ROUNDING_MARGIN


@pytest.mark.parametrize("held_bytes", [1, on_device.HELD_BYTES])
def test_a_record_that_is_not_finite_adds_nothing_and_spoils_nothing(
    monkeypatch: pytest.MonkeyPatch, held_bytes: int
) -> None:
    monkeypatch.setattr(on_device, "HELD_BYTES", held_bytes)
    draw = np.random.default_rng(1)
    left, right = (torch.from_numpy(draw.standard_normal((RECORDS, 5, size)).astype(np.float32)) for size in (6, 7))
    parameter, sums = torch.zeros(6, 7), []
    for broken in (math.nan, math.inf, 0.0):
        left[3, 2, 1] = broken
        if not broken:
            left[3] = 0
        total = {parameter: torch.zeros(6, 7, dtype=torch.float64)}
        norms = clip_on_device({parameter: [LinearUse(left, right)]}, RECORDS, C, total)
        assert bool(norms.isfinite().all()) == (broken == 0)
        sums.append(total[parameter])
    assert torch.equal(sums[0], sums[2])
    assert torch.equal(sums[1], sums[2])
