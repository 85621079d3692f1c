"""ε when the samples are known: E over participations of the Gaussian's δ."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.ledger import PrivateEvent
from atdp_cli.privacy.participation import epsilon_without_amplification, gaussian_delta
from tests.privacy.ledgers import heterogeneous, release, steps


def exact_delta(events: list[PrivateEvent], epsilon: float) -> float:
    """δ(ε) by enumerating every number of participations in every event: Balle and Wang 2018, Theorem 8, averaged."""
    counts = [range(getattr(event, "steps", 1) + 1) for event in events]
    total = 0.0
    for taken in itertools.product(*counts):
        chance, precision = 1.0, 0.0
        for event, count in zip(events, taken, strict=True):
            q = getattr(event, "sampling_rate", 1.0)
            chance *= float(binom.pmf(count, getattr(event, "steps", 1), q))
            precision += count / event.noise_multiplier**2
        if precision and chance:
            mu = math.sqrt(precision)
            inside = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
            total += chance * float(inside)
    return total


@pytest.mark.parametrize(
    "events",
    [
        [steps(0.1, 1.0, 30)],
        [steps(0.02, 3.0, 200)],
        [steps(1.0, 5.0, 4)],
        [steps(1.0, 5.0, 4), release(20.0)],
        [steps(0.1, 1.0, 12), steps(0.3, 2.5, 9)],
        [steps(0.1, 1.0, 6), steps(0.1, 1.7, 6), steps(0.2, 3.1, 5), release(8.0)],
    ],
)
def test_it_is_the_average_over_participations(events: list[PrivateEvent]) -> None:
    epsilon = epsilon_without_amplification(events, 1e-5)
    actual = exact_delta(events, epsilon)
    assert actual <= 1e-5
    # Rounding μ² up costs less than a thousandth of ε.
    assert exact_delta(events, epsilon * (1 - 1e-3)) > 1e-5


@pytest.mark.parametrize("seed", range(8))
def test_amplification_only_helps(seed: int) -> None:
    events = heterogeneous(seed)
    assert epsilon_without_amplification(events, 1e-5) >= epsilon_pld(events, 1e-5, grid=grid_for(events)) - 1e-3


def test_full_batches_have_none() -> None:
    events = [steps(1.0, 5.0, 20)]
    assert epsilon_without_amplification(events, 1e-6) == pytest.approx(epsilon_pld(events, 1e-6, grid=1e-4), abs=1e-5)


def test_hundreds_of_noise_multipliers_stay_close_to_a_merged_one() -> None:
    """σ that differ by a millionth must cost what equal ones cost, though their μ² goes through the grid."""
    apart = [steps(0.01, 2.0 * (1 + 1e-6 * place), 30) for place in range(200)]
    merged = epsilon_without_amplification([steps(0.01, 2.0, 6000)], 1e-6)
    assert merged * (1 - 1e-4) <= epsilon_without_amplification(apart, 1e-6) <= merged * 1.005


def test_many_participations_go_through_a_transform() -> None:
    apart = [steps(0.5, 20.0, 1000), steps(0.5, 20.0 * (1 + 1e-9), 1000)]
    merged = epsilon_without_amplification([steps(0.5, 20.0, 2000)], 1e-6)
    assert epsilon_without_amplification(apart, 1e-6) == pytest.approx(merged, rel=1e-3)


def test_nothing_spent_is_zero() -> None:
    assert epsilon_without_amplification([], 1e-6) == 0.0
    assert epsilon_without_amplification([steps(1e-5, 100.0, 1)], 1e-3) == 0.0


def test_the_gaussians_delta() -> None:
    """μ-GDP at ε = 0: δ = 2Φ(μ/2) − 1, the total variation distance (Dong, Roth and Su 2022)."""
    mu = np.array([0.0, 0.5, 1.0, 4.0])
    assert gaussian_delta(mu, 0.0) == pytest.approx(2 * norm.cdf(mu / 2) - 1)
