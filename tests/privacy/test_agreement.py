"""The accountants against the libraries used directly, and against published figures."""

import doctest
import math
import warnings

import pytest

from atdp_cli.privacy.accountant import epsilon_group, epsilon_paper, epsilon_pld, epsilon_rdp, grid_for
from atdp_cli.privacy.adjacency import equal_steps
from atdp_cli.privacy.ledger import PrivateEvent
from atdp_cli.privacy.pld import compose_pld
from atdp_cli.reporting import charts
from tests.privacy.ledgers import direct_pld, heterogeneous, opacus_rdp, release, steps


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(24))
def test_pld_is_that_of_dp_accounting_on_the_same_grid(seed: int) -> None:
    events = heterogeneous(seed)
    assert epsilon_pld(events, 1e-5, grid=1e-3) == pytest.approx(direct_pld(events, 1e-5, 1e-3), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_pld_of_replace_one_is_that_of_dp_accounting(seed: int) -> None:
    events = heterogeneous(seed)[:2]
    actual = epsilon_pld(events, 1e-5, grid=1e-2, adjacency="replace-one")
    assert actual == pytest.approx(direct_pld(events, 1e-5, 1e-2, replace_one=True), abs=1e-6)


@pytest.mark.one_in(9)
@pytest.mark.parametrize("sigma", [0.3, 30.0, 300.0])
@pytest.mark.parametrize("q", [1e-4, 0.5, 0.999])
def test_pld_agrees_at_the_ends_of_the_range(q: float, sigma: float) -> None:
    events: list[PrivateEvent] = [steps(q, sigma, 3)]
    grid = max(1e-4, grid_for(events))
    assert epsilon_pld(events, 1e-5, grid=grid) == pytest.approx(direct_pld(events, 1e-5, grid), abs=1e-6)


@pytest.mark.parametrize("seed", range(100, 112))
def test_rdp_of_two_libraries_agrees_within_a_hundredth(seed: int) -> None:
    events = heterogeneous(seed)
    assert epsilon_rdp(events, 1e-5) == pytest.approx(opacus_rdp(events, 1e-5), rel=0.01)


def test_opacus_as_a_second_opinion() -> None:
    from opacus.accountants import PRVAccountant

    events: list[PrivateEvent] = [steps(0.0256, 1.0, 100), steps(0.0256, 2.0, 100), release(20.0)]
    assert opacus_rdp(events, 1e-6) == pytest.approx(epsilon_rdp(events, 1e-6), rel=0.01)
    accountant = PRVAccountant()
    # Opacus' PRV takes the logarithm of 1−q.
    accountant.history = [(sigma, min(q, 1 - 1e-9), count) for q, sigma, count in equal_steps(events)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 0 <= accountant.get_epsilon(1e-6) - epsilon_pld(events, 1e-6, grid=1e-3) <= 0.02


# Sources of the figures below:
# TF Privacy, compute_dp_sgd_privacy_lib_test.py, Test0 and Test1, before and after the conversion of Canonne et al.
TFP0, TFP1 = steps(150 / 60000, 1.3, 6000), steps(100 / 100000, 1.0, 30000)
# Bu, Dong, Long and Su 2020, "Deep Learning with Gaussian Differential Privacy", MNIST by the moments accountant
# (Table 1 with 15, 60 and 45 epochs; Figure 4 with 70).
MNIST = {
    (sigma, epochs): steps(256 / 60000, sigma, math.ceil(epochs * 60000 / 256))
    for sigma, epochs in ((1.3, 15), (1.1, 60), (0.7, 45), (0.7, 70))
}
# Abadi et al. 2016, Figure 2: q = 0.01, σ = 4, 100 epochs.
ABADI = steps(0.01, 4.0, 10000)
# Opacus, accountants_test.py: σ = 1.5, q = 0.04, ⌊90/0.04⌋ steps in floating point.
OPACUS = steps(0.04, 1.5, int(90 // 0.04))


@pytest.mark.parametrize(
    ("event", "delta", "published", "last_digit"),
    [
        (TFP0, 1e-5, 0.941870567, 1e-6),
        (TFP1, 1e-7, 1.70928734, 1e-6),
        (MNIST[1.3, 15], 1e-5, 1.19, 0.005),
        (MNIST[1.1, 60], 1e-5, 3.01, 0.005),
        (MNIST[0.7, 45], 1e-5, 7.10, 0.005),
        (MNIST[0.7, 70], 1e-5, 8.68, 0.005),
        (ABADI, 1e-5, 1.26, 0.005),
    ],
)
def test_published_figures_by_the_papers_conversion(
    event: PrivateEvent, delta: float, published: float, last_digit: float
) -> None:
    assert epsilon_paper([event], delta) == pytest.approx(published, abs=last_digit)


@pytest.mark.parametrize(
    ("event", "delta", "published", "tolerance"),
    [
        (TFP0, 1e-5, 0.7242234026109595, 1e-6),
        (TFP1, 1e-7, 1.4154988495444845, 1e-6),
        # Opacus has other orders.
        (OPACUS, 1e-5, 7.32911117143, 5e-3),
    ],
)
def test_published_figures_by_rdp(event: PrivateEvent, delta: float, published: float, tolerance: float) -> None:
    assert epsilon_rdp([event], delta) == pytest.approx(published, abs=tolerance)


@pytest.mark.parametrize(
    ("events", "delta", "published", "tolerance"),
    [
        # Opacus, accountants_test.py: PRV, an upper bound within 0.01 on either side.
        ([OPACUS], 1e-5, 6.777395712150674, 0.02),
        # OpenDP, test of the analytic Gaussian mechanism of Balle and Wang 2018: σ for (1, 1e-5).
        ([steps(1.0, 3.730632, 1)], 1e-5, 1.0, 1e-5),
        # dp_accounting, pld_privacy_accountant_test.py: three Gaussians with σ² = 3, which together are 1-GDP (Dong,
        # Roth and Su 2022, Corollary 1: δ(1) = Φ(−1/2) − e·Φ(−3/2)), and three steps with q = 0.2, σ = 0.5.
        ([steps(1.0, math.sqrt(3), 3)], 0.126936, 1.0, 1e-3),
        ([steps(0.2, 0.5, 3)], 0.15594, 1.0, 1e-3),
    ],
)
def test_published_figures_by_pld(events: list[PrivateEvent], delta: float, published: float, tolerance: float) -> None:
    assert epsilon_pld(events, delta, grid=1e-4) == pytest.approx(published, abs=tolerance)


def test_orders_reach_noise_multipliers_in_the_hundreds() -> None:
    """For full batches the paper's conversion has its minimum at 1 + σ·√(2·ln(1/δ)/n), here in the thousands."""
    for sigma in (100.0, 500.0):
        best = 1 + sigma * math.sqrt(2 * math.log(1e6) / 10)
        exact = 10 * best / (2 * sigma**2) + math.log(1e6) / (best - 1)
        assert epsilon_paper([steps(1.0, sigma, 10)], 1e-6) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(("records", "expected"), [(1, 3.877), (2, 8.546), (10, 62.43)])
def test_a_group_is_no_multiple_of_a_record(records: int, expected: float) -> None:
    events: list[PrivateEvent] = [steps(128 / 1500, 1.0, 36)]
    actual = epsilon_group(events, 1e-5, records=records, grid=1e-3)
    assert actual == pytest.approx(expected, abs=0.01)
    if records == 1:
        assert actual == epsilon_pld(events, 1e-5, grid=1e-3)


def test_a_group_in_full_batches_is_a_gaussian_with_less_noise() -> None:
    assert epsilon_group([steps(1.0, 6.0, 2)], 1e-5, records=3, grid=1e-3) == pytest.approx(
        epsilon_pld([steps(1.0, 2.0, 2)], 1e-5, grid=1e-3), rel=1e-3
    )


def test_a_figure_is_computed_once_however_often_it_is_asked_for() -> None:
    events = heterogeneous(77)
    compose_pld.cache_clear()
    for delta in (1e-5, 1e-6, 1e-7):
        epsilon_pld(events, delta, grid=1e-3)
    assert compose_pld.cache_info().misses == 1
    assert equal_steps(events) == equal_steps(list(reversed(events)))


def test_the_examples_of_the_charts_hold() -> None:
    assert doctest.testmod(charts).failed == 0
