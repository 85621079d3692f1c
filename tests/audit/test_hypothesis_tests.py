"""Holm, Fisher and power, against their definitions."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.audit.hypothesis_tests import fisher, holm, power

P_VALUES = st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(P_VALUES, st.floats(0.001, 0.3))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float], level: float) -> None:
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = set()
    for step, i in enumerate(order):
        if p_values[i] * (len(p_values) - step) > level:
            break
        rejected.add(i)
    assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected


@settings(max_examples=200, deadline=None)
@given(P_VALUES)
def test_fisher_is_the_chi_squared_tail(p_values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.chi2.sf(-2 * sum(log(p) for p in p_values), 2 * len(p_values))
    assert fisher(p_values) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_fisher_of_one_is_its_own_and_of_many_does_not_overflow() -> None:
    assert fisher([0.03]) == pytest.approx(0.03)
    assert fisher([1.0] * 5) == 1.0
    assert fisher([1e-6] * 2000) == 0.0
    assert 0.4 < fisher([float(np.exp(-1))] * 2000) < 0.6


def test_power_without_memory_is_the_size() -> None:
    by_chance = power([10**6] * 10, 0.005, mean_exposure=1 / np.log(2))
    assert 0.005 < by_chance < 0.01


@pytest.mark.parametrize(
    ("count", "level", "least", "most"),
    [
        (1, 0.005, 0.1, 0.25),
        (5, 0.005, 0.5, 0.7),
        (10, 0.005, 0.83, 0.86),
        (10, 0.0025, 0.80, 0.82),
        (30, 0.005, 0.99, 1),
    ],
)
def test_ten_canaries_are_just_enough(count: int, level: float, least: float, most: float) -> None:
    found = power([10**6] * count, level)
    assert least <= found <= most
    assert found == power([10**6] * count, level), "a verdict never depends on the day"


def test_power_of_one_canary_in_closed_form() -> None:
    """One canary: rejected when its rank is among the first or last level * |S| / 2."""
    level, exponent = 0.05, 1 / (5 * log(2))
    tail = level / 2
    expected = tail**exponent + 1 - (1 - tail) ** exponent
    assert power([10**6], level) == pytest.approx(expected, abs=0.006)


def test_small_strata_cost_power() -> None:
    assert power([100] * 10, 0.005) < power([10**6] * 10, 0.005)
    assert power([1] * 10, 0.005) == 0.0


def test_many_canaries_take_no_longer() -> None:
    assert power([10**6] * 3000, 0.005) == 1.0
