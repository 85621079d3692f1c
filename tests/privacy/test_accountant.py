"""ε against oracles: the closed form of the Gaussian mechanism, dp_accounting used directly, published values."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import (
    epsilon_paper,
    epsilon_pld,
    epsilon_points,
    epsilon_rdp,
    epsilons,
    grid_for,
)
from atdp_cli.privacy.ledger import PrivateEvent, SubsampledGaussian
from atdp_cli.privacy.participation import epsilon_without_amplification
from atdp_cli.privacy.relation import hypothetical
from tests.privacy.ledgers import heterogeneous, release, steps


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """δ(ε) of the Gaussian mechanism with sensitivity 1 (Balle and Wang 2018, Theorem 8)."""
    return float(
        norm.cdf(1 / (2 * sigma) - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-1 / (2 * sigma) - epsilon * sigma)
    )


@pytest.mark.parametrize(("sigma", "count"), [(1.0, 1), (5.0, 1), (5.0, 20), (20.0, 1), (0.5, 3)])
def test_full_batches_agree_with_the_closed_form(sigma: float, count: int) -> None:
    events = [steps(1.0, sigma, count)]
    epsilon = epsilon_pld(events, 1e-6, grid=1e-4)
    assert gaussian_delta(epsilon, sigma / math.sqrt(count)) == pytest.approx(1e-6, rel=0.01)
    assert gaussian_delta(epsilon, sigma / math.sqrt(count)) <= 1e-6


@pytest.mark.parametrize(
    ("events", "pld", "rdp", "paper"),
    [([steps(0.01, 0.7, 2000)], 6.209, 7.067, 7.938), ([steps(0.01, 200.0, 300)], 0.0016, None, None)],
)
def test_known_figures(events: list[PrivateEvent], pld: float, rdp: float | None, paper: float | None) -> None:
    """2,000 steps at q = 0.01, σ = 0.7, δ = 1e-5; and σ = 200, where RDP orders up to 63 end at ε = 0.1."""
    actual = epsilons(events, 1e-5, grid=grid_for(events))
    assert actual.rdp is not None
    assert actual.paper is not None
    assert actual.pld == pytest.approx(pld, abs=6e-4 if pld > 1 else 1e-4)
    if rdp is None or paper is None:
        assert actual.pld < actual.rdp < 0.003 < actual.paper < 0.006
    else:
        assert actual.rdp == pytest.approx(rdp, rel=0.011)
        assert actual.paper == pytest.approx(paper, rel=0.006)


def test_the_papers_conversion_by_hand() -> None:
    """Rényi DP of one Gaussian is a/(2σ²); min over a of a/(2σ²) + ln(1/δ)/(a−1) is at a = 1 + σ√(2 ln(1/δ))."""
    sigma, delta = 4.0, 1e-6
    order = 1 + sigma * math.sqrt(2 * math.log(1 / delta))
    exact = order / (2 * sigma**2) + math.log(1 / delta) / (order - 1)
    assert epsilon_paper([steps(1.0, sigma, 1)], delta) == pytest.approx(exact, rel=1e-3)


@pytest.mark.ci
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_laws_of_epsilon(seed: int) -> None:
    draw = random.Random(seed)
    first, second = heterogeneous(draw.randrange(10**9)), heterogeneous(draw.randrange(10**9))
    grid = grid_for(first + second)

    def epsilon(events: list[PrivateEvent]) -> float:
        return epsilon_pld(events, 1e-6, grid=grid)

    together = epsilon(first + second)
    shuffled = first + second
    draw.shuffle(shuffled)
    assert epsilon(shuffled) == together
    assert together >= max(epsilon(first), epsilon(second)) - 1e-6
    place, factor = draw.randrange(len(first)), draw.uniform(1, 3)
    louder = [
        event.model_copy(update={"noise_multiplier": event.noise_multiplier * (factor if here == place else 1)})
        for here, event in enumerate(first)
    ]
    assert epsilon(louder + second) <= together + grid
    assert epsilon_rdp(louder + second, 1e-6) <= epsilon_rdp(first + second, 1e-6) * (1 + 1e-3)
    assert epsilon_without_amplification(louder, 1e-6) <= epsilon_without_amplification(first, 1e-6) * (1 + 1e-3)
    assert epsilon_pld(first, 1e-6, grid=grid, adjacency="replace-one") >= epsilon(first) - 1e-6


def test_a_release_is_a_full_batch_gaussian() -> None:
    assert epsilon_pld([release(20.0)], 1e-6, grid=1e-4) == epsilon_pld([steps(1.0, 20.0, 1)], 1e-6, grid=1e-4)


@pytest.mark.parametrize(
    ("q", "sigma", "count"), [(0.1, 1e-3, 1), (0.1, 0.01, 10**6), (0.25, 1e-160, 1), (1, 1, 10**5)]
)
def test_an_epsilon_in_the_thousands_is_refused_at_once(q: float, sigma: float, count: int) -> None:
    with pytest.raises(BudgetError, match="thousands"):
        epsilon_pld([steps(q, sigma, count)], 1e-6, grid=grid_for([steps(q, sigma, count)]))


@pytest.mark.parametrize(("q", "sigma", "count"), [pytest.param(1.0, 0.05, 10, marks=pytest.mark.ci), (0.1, 0.06, 20)])
def test_a_coarse_grid_agrees_with_a_fine_one(q: float, sigma: float, count: int) -> None:
    events = [steps(q, sigma, count)]
    coarse, fine = epsilon_pld(events, 1e-6, grid=grid_for(events)), epsilon_pld(events, 1e-6, grid=1e-3)
    assert grid_for(events) > 1e-3
    assert coarse == pytest.approx(fine, rel=0.01)


def test_nothing_spent_is_zero() -> None:
    assert epsilons([], 1e-6, grid=1e-3).pld == 0.0


def test_failing_orders_are_left_out_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    assert math.isfinite(epsilon_rdp([steps(0.33, 1.0, 24)], 1e-5))
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_the_curves_end_at_the_figure_and_rise(seed: int) -> None:
    events = heterogeneous(seed)
    whole = epsilon_pld(events, 1e-6, grid=1e-3)
    over_steps = epsilon_points(events, 1e-6, grid=1e-3, points=7)
    assert over_steps[-1].pld == pytest.approx(whole, abs=1e-6)
    assert over_steps[-1].step == sum(getattr(event, "steps", 1) for event in events)
    assert [point.pld for point in over_steps] == sorted(point.pld for point in over_steps)
    assert epsilon_pld(events, 1e-8, grid=1e-3) >= whole >= epsilon_pld(events, 1e-4, grid=1e-3)


def test_curves_of_nothing_are_empty() -> None:
    assert epsilon_points([], 1e-6, grid=1e-3) == ()


@given(st.floats(1, 300), st.floats(1e-4, 1))
def test_the_grid_is_a_tenth_of_a_steps_loss_within_its_ends(sigma: float, q: float) -> None:
    grid = grid_for([steps(q, sigma, 1), steps(1.0, 1.0, 1)])
    assert 1e-5 <= grid <= 1e-3
    assert grid <= max(0.1 * q / sigma, 1.1e-5) * (1 + 1e-12)


@pytest.mark.ci
def test_the_grid_is_coarser_where_losses_are_large_beside_small_ones() -> None:
    events = [steps(1e-5, 300.0, 40), steps(0.05, 0.2, 300)]
    assert grid_for(events) > 1e-4
    coarse, fine = (epsilon_pld(events, 1e-6, grid=grid) for grid in (1e-3, grid_for(events)))
    assert coarse == pytest.approx(fine, rel=1e-3)


@pytest.mark.parametrize(("first", "second", "points"), [(1, 1, 1), (17, 30, 4), (40, 2, 3)])
def test_moments_are_the_accountants_at_each_beginning(first: int, second: int, points: int) -> None:
    check_moments(first, second, points)


@pytest.mark.ci
@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 15))
@settings(max_examples=15)
def test_moments_are_the_accountants_at_any_beginning(first: int, second: int, points: int) -> None:
    check_moments(first, second, points)


def check_moments(first: int, second: int, points: int) -> None:
    """Each moment is what the accountants say of the events up to there, and the last is the whole."""
    events = [
        SubsampledGaussian(
            stage="a", sampling_rate=0.05, noise_multiplier=1.1, clip_norm=1.0, steps=first, relation=hypothetical()
        ),
        SubsampledGaussian(
            stage="b", sampling_rate=0.02, noise_multiplier=0.9, clip_norm=1.0, steps=second, relation=hypothetical()
        ),
    ]
    actual = epsilon_points(events, 1e-6, grid=1e-3, points=points)
    assert len(actual) <= points
    assert actual[-1].step == first + second
    for point in actual:
        until = [events[0].model_copy(update={"steps": min(first, point.step)})]
        if point.step > first:
            until.append(events[1].model_copy(update={"steps": point.step - first}))
        assert point.pld == pytest.approx(epsilon_pld(until, 1e-6, grid=1e-3), rel=1e-3)
        assert point.rdp == pytest.approx(epsilon_rdp(until, 1e-6))
        assert point.paper == pytest.approx(epsilon_paper(until, 1e-6))
