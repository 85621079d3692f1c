"""Noisy counts: how far one record moves them, what that costs, and what is left of the noise."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from atdp_cli.privacy.accountant import epsilon_group, epsilon_pld
from atdp_cli.privacy.ledger import GaussianRelease
from atdp_cli.privacy.noisy_statistic import REPLACED, SENSITIVITY, clipped_votes, shrink_counts
from atdp_cli.privacy.relation import hypothetical

ITEMS = 12
RECORD = st.dictionaries(st.integers(0, ITEMS - 1), st.floats(0, 50), max_size=ITEMS)


BITS = st.integers(0, 80)


@given(st.lists(RECORD, max_size=5), RECORD, RECORD, BITS)
def test_one_record_moves_the_sum_by_its_sensitivity_at_most(
    others: list[dict[int, float]], ours: dict[int, float], theirs: dict[int, float], bits: int
) -> None:
    """Exactly: no rounding makes it more."""
    there, gone, other = (clipped_votes([*others, votes], ITEMS, bits).counts for votes in (ours, {}, theirs))
    assert moved(there, gone) <= 4**bits
    assert moved(there, other) <= 2 * 4**bits
    assert (SENSITIVITY, REPLACED) == (1.0, 2**0.5)


def moved(counts: Sequence[int], other: Sequence[int]) -> int:
    """The square of the distance, in widths of the grid."""
    return sum((a - b) ** 2 for a, b in zip(counts, other, strict=True))


@given(st.lists(RECORD, max_size=5))
def test_on_a_fine_grid_they_are_the_clipped_votes(records: list[dict[int, float]]) -> None:
    expected = np.zeros(ITEMS)
    for votes in records:
        for item, vote in votes.items():
            expected[item] += vote / max(1.0, math.hypot(*votes.values()))
    actual = np.array(clipped_votes(records, ITEMS, 60).counts) / 2**60
    assert actual == pytest.approx(expected, abs=1e-12)


def test_the_bounds_are_reached() -> None:
    there, gone, other = (clipped_votes([votes], ITEMS, 50).counts for votes in ({0: 7.0}, {}, {1: 7.0}))
    assert moved(there, gone) == 4**50
    assert moved(there, other) == 2 * 4**50


def test_small_votes_stay_as_they_are_and_the_sum_is_over_all_records() -> None:
    actual = clipped_votes([{0: 0.5}, {0: 0.25, 3: 0.5}, {}, {1: 3.0, 2: 4.0}], ITEMS, 50)
    assert [count / 2**50 for count in actual.counts[:4]] == pytest.approx([0.75, 0.6, 0.8, 0.5])
    assert sum(actual.counts[4:]) == 0
    assert actual.bits == 50


@pytest.mark.parametrize("vote", [-0.1, math.nan, math.inf])
def test_votes_that_would_break_the_bound_are_refused(vote: float) -> None:
    with pytest.raises(ValueError, match="vote"):
        clipped_votes([{0: 1.0, 1: vote}], ITEMS, 50)


def release(sigma: float, replaced: float) -> GaussianRelease:
    return GaussianRelease(
        stage="a", statistic="b", sensitivity=1.0, noise_multiplier=sigma, replaced=replaced, relation=hypothetical()
    )


@pytest.mark.one_in(6)
@pytest.mark.parametrize("sigma", [0.8, 2.5, 10.0])
@pytest.mark.parametrize("moved", [1.0, REPLACED, 2.0])
def test_replacing_a_record_costs_what_the_gaussian_mechanism_says(sigma: float, moved: float) -> None:
    """Balle and Wang 2018, theorem 8: δ(ε) of a Gaussian with μ = moved/σ."""
    delta, mu = 1e-6, moved / sigma
    epsilon = epsilon_pld([release(sigma, moved)], delta, grid=1e-4, adjacency="replace-one")
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exact <= delta
    assert exact == pytest.approx(delta, rel=0.02)
    group = epsilon_group([release(sigma, moved)], delta, records=1, grid=1e-4, adjacency="replace-one")
    assert group == pytest.approx(epsilon)


def test_zeroing_out_does_not_look_at_it() -> None:
    epsilon, epsilon_of_two = (epsilon_pld([release(1.5, moved)], 1e-6, grid=1e-4) for moved in (1.0, 2.0))
    assert epsilon == epsilon_of_two


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.floats(0.5, 5))
def test_posterior_means_are_those_of_some_prior(seed: int, sigma: float) -> None:
    """They are in order, never negative, and never far above what was seen."""
    noisy = np.sort(np.random.default_rng(seed).normal(0, 4 * sigma, 40))
    actual = shrink_counts(noisy, sigma)
    assert (actual >= 0).all()
    assert (np.diff(actual) >= -1e-9).all()
    assert (actual <= np.maximum(noisy, 0) + 2 * sigma).all()


@given(st.integers(0, 2**32), st.integers(1, 30), st.floats(0.5, 5))
def test_each_row_has_a_prior_of_its_own(seed: int, items: int, sigma: float) -> None:
    draw = np.random.default_rng(seed)
    means = np.array([[0.1], [1.0], [10.0], [1000.0]])
    rows = draw.normal(0, sigma, (4, items)) + means * draw.exponential(size=(4, items))
    np.testing.assert_allclose(shrink_counts(rows, sigma), [shrink_counts(row, sigma) for row in rows], rtol=1e-9)


def test_a_posterior_mean_is_the_integral_that_it_should_be() -> None:
    """Two items determine nothing but the prior, so the grid's own choice is found again by numerical integration."""
    noisy, sigma = np.array([9.0, 0.3]), 2.0

    def normal(x: float) -> float:
        return math.exp(-((x / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))

    def mean(share: float, slab: float, y: float) -> tuple[float, float]:
        def weight(c: float) -> float:
            return share / slab * math.exp(-c / slab) * normal(y - c)

        evidence = integrate.quad(weight, 0, 80)[0]
        return integrate.quad(lambda c: c * weight(c), 0, 80)[0], evidence + (1 - share) * normal(y)

    candidates = []
    for slab in np.geomspace(0.25 * sigma, 9.0, 24):
        for share in (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8, 0.95):
            parts = [mean(share, float(slab), float(y)) for y in noisy]
            candidates.append((math.prod(e for _, e in parts), [m / e for m, e in parts]))
    assert shrink_counts(noisy, sigma).tolist() == pytest.approx(max(candidates)[1], rel=1e-4)


@pytest.mark.parametrize("occur", [0, 5, 150])
def test_it_comes_nearer_to_the_truth_than_the_noisy_counts(occur: int) -> None:
    dice = np.random.default_rng(occur)
    errors = []
    for _ in range(20):
        truth = np.zeros(300)
        truth[:occur] = dice.exponential(12, occur)
        noisy = truth + dice.normal(0, 3, 300)
        errors.append(
            [np.square(actual - truth).sum() for actual in (shrink_counts(noisy, 3.0), np.maximum(noisy, 0), noisy)]
        )
    ours, clamped, raw = np.mean(errors, axis=0)
    assert ours < clamped < raw
