"""ε against oracles: the closed form of the Gaussian mechanism, dp_accounting used directly, published values."""

import math
import random

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import (
    epsilon_paper,
    epsilon_pld,
    epsilon_rdp,
    epsilons,
    grid_for,
)
from atdp_cli.privacy.ledger import GaussianRelease, PrivateEvent, SubsampledGaussian


def steps(q: float, sigma: float, count: int) -> SubsampledGaussian:
    return SubsampledGaussian(stage="a", sampling_rate=q, noise_multiplier=sigma, clip_norm=0.1, steps=count)


def random_events(draw: random.Random) -> list[PrivateEvent]:
    return [
        steps(draw.uniform(0.01, 0.3), draw.uniform(0.8, 6), draw.randint(1, 40)) for _ in range(draw.randint(1, 4))
    ]


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


@pytest.mark.parametrize("seed", range(12))
def test_random_ledgers_agree_with_dp_accounting_used_directly(seed: int) -> None:
    events = random_events(random.Random(seed))
    pld = PLDAccountant(value_discretization_interval=1e-3)
    rdp = RdpAccountant()
    for event in events:
        assert isinstance(event, SubsampledGaussian)
        mechanism = dp_accounting.PoissonSampledDpEvent(
            event.sampling_rate, dp_accounting.GaussianDpEvent(event.noise_multiplier)
        )
        pld.compose(mechanism, event.steps)
        rdp.compose(mechanism, event.steps)
    assert epsilon_pld(events, 1e-5, grid=1e-3) == pytest.approx(pld.get_epsilon(1e-5), abs=1e-6)
    assert epsilon_rdp(events, 1e-5) == pytest.approx(rdp.get_epsilon(1e-5), rel=0.01)


@pytest.mark.parametrize(
    ("events", "pld", "rdp", "paper"),
    [([steps(0.01, 0.7, 2000)], 6.209, 7.067, 7.938), ([steps(0.01, 200.0, 300)], 0.0016, None, None)],
)
def test_known_figures(events: list[PrivateEvent], pld: float, rdp: float | None, paper: float | None) -> None:
    """2,000 steps at q = 0.01, σ = 0.7, δ = 1e-5; and σ = 200, where RDP orders up to 63 end at ε = 0.1."""
    found = epsilons(events, 1e-5, grid=grid_for(events))
    assert found.pld == pytest.approx(pld, abs=6e-4 if pld > 1 else 1e-4)
    if rdp is None or paper is None:
        assert found.pld < found.rdp < 0.003 < found.paper < 0.006
    else:
        assert found.rdp == pytest.approx(rdp, rel=0.011)
        assert found.paper == pytest.approx(paper, rel=0.006)


def test_the_papers_conversion_by_hand() -> None:
    """Rényi DP of one Gaussian is a/(2σ²); min over a of a/(2σ²) + ln(1/δ)/(a−1) is at a = 1 + σ√(2 ln(1/δ))."""
    sigma, delta = 4.0, 1e-6
    order = 1 + sigma * math.sqrt(2 * math.log(1 / delta))
    exact = order / (2 * sigma**2) + math.log(1 / delta) / (order - 1)
    assert epsilon_paper([steps(1.0, sigma, 1)], delta) == pytest.approx(exact, rel=1e-3)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_laws_of_epsilon(seed: int) -> None:
    draw = random.Random(seed)
    first, second = random_events(draw), random_events(draw)
    grid = grid_for(first + second)

    def epsilon(events: list[PrivateEvent]) -> float:
        return epsilon_pld(events, 1e-6, grid=grid)

    together = epsilon(first + second)
    shuffled = first + second
    draw.shuffle(shuffled)
    assert epsilon(shuffled) == together
    assert together >= max(epsilon(first), epsilon(second)) - 1e-6
    louder = [event.model_copy(update={"noise_multiplier": event.noise_multiplier * 1.5}) for event in first]
    assert epsilon(louder + second) <= together + grid
    assert epsilon_pld(first, 1e-6, grid=grid, adjacency="replace-one") >= epsilon(first) - 1e-6


def test_a_release_is_a_full_batch_gaussian() -> None:
    release = GaussianRelease(stage="a", statistic="alpha", sensitivity=1.0, noise_multiplier=20.0)
    assert epsilon_pld([release], 1e-6, grid=1e-4) == epsilon_pld([steps(1.0, 20.0, 1)], 1e-6, grid=1e-4)


@pytest.mark.parametrize(
    ("q", "sigma", "count"), [(0.1, 1e-3, 1), (0.1, 0.01, 10**6), (0.25, 1e-160, 1), (1, 1, 10**5)]
)
def test_an_epsilon_in_the_thousands_is_refused_at_once(q: float, sigma: float, count: int) -> None:
    with pytest.raises(BudgetError, match="thousands"):
        epsilon_pld([steps(q, sigma, count)], 1e-6, grid=grid_for([steps(q, sigma, count)]))


@pytest.mark.parametrize(("q", "sigma", "count"), [(1.0, 0.05, 10), (0.1, 0.06, 20)])
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
