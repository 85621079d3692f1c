"""ε of several records that change together, against closed forms, dp_accounting and direct integration."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import binom, norm

from atdp_cli.privacy.accountant import epsilon_group, epsilon_pld, grid_for
from atdp_cli.privacy.adjacency import Adjacency
from tests.privacy.ledgers import steps

Floats = npt.NDArray[np.float64]

ADJACENCIES: tuple[Adjacency, ...] = ("zero-out", "replace-one")


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of the Gaussian mechanism with sensitivity/σ = μ (Balle and Wang 2018, Theorem 8)."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def hockey_stick(epsilon: float, q: float, sigma: float, before: Floats, after: Floats) -> float:
    """δ(ε) of one step for records that add `before` or `after` to the sum when sampled, by integration."""
    reach = len(before) + 9 * sigma
    x, width = np.linspace(-reach, reach, 40_001, retstep=True)
    there, here = np.zeros_like(x), np.zeros_like(x)
    for sampled in itertools.product((0, 1), repeat=len(before)):
        chance = q ** sum(sampled) * (1 - q) ** (len(before) - sum(sampled))
        there += chance * norm.pdf(x, np.dot(sampled, before), sigma)
        here += chance * norm.pdf(x, np.dot(sampled, after), sigma)
    return float(np.maximum(there - math.exp(epsilon) * here, 0).sum() * width)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_group_of_one_is_a_record(adjacency: Adjacency) -> None:
    events = [steps(0.1, 1.2, 20), steps(1.0, 30.0, 3)]
    actual = epsilon_group(events, 1e-5, records=1, grid=1e-3, adjacency=adjacency)
    assert actual == epsilon_pld(events, 1e-5, grid=1e-3, adjacency=adjacency)


@pytest.mark.parametrize("records", [1, 2, 7])
@pytest.mark.parametrize(("adjacency", "moved"), [("zero-out", 1), ("replace-one", 2)])
def test_full_batches_agree_with_the_closed_form(records: int, adjacency: Adjacency, moved: int) -> None:
    epsilon = epsilon_group([steps(1.0, 9.0, 4)], 1e-6, records=records, grid=1e-4, adjacency=adjacency)
    delta = gaussian_delta(epsilon, moved * records * math.sqrt(4) / 9.0)
    assert delta == pytest.approx(1e-6, rel=0.01)
    assert delta <= 1e-6


@pytest.mark.parametrize(("records", "q", "sigma", "count"), [(2, 0.01, 0.7, 30), (5, 0.3, 4.0, 8), (3, 0.9, 2.0, 2)])
def test_zeroing_out_agrees_with_dp_accounting(records: int, q: float, sigma: float, count: int) -> None:
    oracle = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        sigma,
        np.arange(records + 1),
        binom.pmf(np.arange(records + 1), records, q),
        value_discretization_interval=1e-2 * records,
    ).self_compose(count)
    for delta in (1e-3, 1e-6):
        actual = epsilon_group([steps(q, sigma, count)], delta, records=records, grid=1e-2)
        assert actual == pytest.approx(oracle.get_epsilon_for_delta(delta), abs=1e-8)


@pytest.mark.parametrize("records", [1, 2, 4])
@pytest.mark.parametrize(("q", "sigma"), [(0.05, 0.8), (0.4, 2.0), (0.3, 0.3), (0.95, 5.0)])
def test_replacing_agrees_with_integration(records: int, q: float, sigma: float) -> None:
    """All records go from +C to −C along one direction."""
    epsilon = epsilon_group([steps(q, sigma, 1)], 1e-3, records=records, grid=1e-3, adjacency="replace-one")
    delta = hockey_stick(epsilon, q, sigma, np.ones(records), -np.ones(records))
    assert delta == pytest.approx(1e-3, rel=1e-3)
    assert delta <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_no_other_replacement_is_worse(seed: int) -> None:
    """Three records that add anything from −C to C, before and after."""
    draw = np.random.default_rng(seed)
    q, sigma = draw.uniform(0.05, 1), draw.uniform(0.5, 2)
    before, after = draw.uniform(-1, 1, 3), draw.uniform(-1, 1, 3)
    for delta in (0.1, 1e-3):
        epsilon = epsilon_group([steps(q, sigma, 1)], delta, records=3, grid=1e-3, adjacency="replace-one")
        assert hockey_stick(epsilon, q, sigma, before, after) <= delta


@pytest.mark.ci
def test_more_records_or_replacing_them_cost_more() -> None:
    events = [steps(128 / 1500, 1.0, 36), steps(0.02, 0.9, 10), steps(1.0, 40.0, 1)]
    zeroed, replaced = (
        [epsilon_group(events, 1e-5, records=records, grid=1e-3, adjacency=adjacency) for records in (1, 2, 3, 10)]
        for adjacency in ADJACENCIES
    )
    assert zeroed == sorted(zeroed)
    assert replaced == sorted(replaced)
    assert all(less < more for less, more in zip(zeroed, replaced, strict=True))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("records", "sigma"), [(10, 0.05)])
def test_little_noise_is_worked_out_too(adjacency: Adjacency, records: int, sigma: float) -> None:
    """With next to no noise all is lost once a record is sampled: δ(ε) is that chance, up to an ε of thousands."""
    events = [steps(1e-4, sigma, 1)]
    chance = 1 - (1 - 1e-4) ** records
    grid = grid_for(events)
    assert epsilon_group(events, chance * 1.001, records=records, grid=grid, adjacency=adjacency) < 1
    assert epsilon_group(events, chance * 0.9, records=records, grid=grid, adjacency=adjacency) > 100
