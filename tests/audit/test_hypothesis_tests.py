"""Holm, Fisher and power, against their definitions."""

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.audit.hypothesis_tests import fisher, holm, least_detectable, mean_upper_limit, power

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
    by_chance = power((10**6,) * 10, 0.005, mean_exposure=1 / np.log(2))
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
    actual = power((10**6,) * count, level)
    assert least <= actual <= most
    assert actual == power((10**6,) * count, level), "a verdict never depends on the day"


def test_power_of_one_canary_in_closed_form() -> None:
    """One canary: rejected when its rank is among the first or last level * |S| / 2."""
    level, exponent = 0.05, 1 / (5 * log(2))
    tail = level / 2
    expected = tail**exponent + 1 - (1 - tail) ** exponent
    assert power((10**6,), level) == pytest.approx(expected, abs=0.006)


def test_small_strata_cost_power() -> None:
    assert power((100,) * 10, 0.005) < power((10**6,) * 10, 0.005)
    assert power((1,) * 10, 0.005) == 0.0


def test_many_canaries_take_no_longer() -> None:
    assert power((10**6,) * 3000, 0.005) == 1.0


@pytest.mark.one_in(4)
@pytest.mark.parametrize("count", [5, 10, 30, 100])
def test_a_pass_states_the_smallest_mean_that_is_found_so_often(count: int) -> None:
    """Rounded up to a tenth of a bit; the draws have a standard error of 0.004 at most, those of `power` of 0.002."""
    sizes, level = (10**6,) * count, 0.005
    actual = least_detectable(sizes, level, least_power=0.8)
    assert actual is not None
    assert power(sizes, level, mean_exposure=actual) > 0.8 - 0.013
    assert power(sizes, level, mean_exposure=actual - 0.11) < 0.8 + 0.013


def test_what_is_never_found_so_often_has_no_smallest_mean() -> None:
    assert least_detectable((10**6,), 0.005, least_power=0.8) is None
    assert least_detectable((1,) * 10, 0.005, least_power=0.8) is None


MOST = 20.0


def chance(dice: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Uniform ranks among 2^20."""
    return 20 - np.log2(dice.integers(1, 2**20 + 1, size=count))


def all_alike(dice: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    return np.minimum(MOST, dice.exponential(4.0, size=count))


def few_wholly(dice: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """One in five is remembered to the last digit, the others not at all: what an exponential law would not expect."""
    return np.where(dice.random(count) < 0.2, MOST, 0.0)


def some_better_than_others(dice: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """The canaries have laws of their own, between never and always found."""
    return np.where(dice.random(count) < np.linspace(0, 0.4, count), 0.9 * MOST, chance(dice, count))


LAWS = {law.__name__: law for law in (chance, all_alike, few_wholly, some_better_than_others)}


@pytest.mark.one_in(10)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("count", [3, 10, 60])
@pytest.mark.parametrize("law", LAWS)
def test_the_upper_limit_is_above_the_mean_as_often_as_it_says(law: str, count: int, confidence: float) -> None:
    """4,000 audits of each law; the mean is that of 200,000 draws, whose own error is far smaller."""
    dice = np.random.default_rng(17)
    mean = np.mean([LAWS[law](dice, count).mean() for _ in range(200_000 // count)])
    covered = [
        mean_upper_limit(LAWS[law](dice, count).tolist(), MOST, confidence=confidence) >= mean for _ in range(4000)
    ]
    assert np.mean(covered) >= confidence - 3 * np.sqrt(confidence * (1 - confidence) / 4000)


@pytest.mark.parametrize("count", [3, 10, 60])
def test_the_upper_limit_is_exact_at_the_worst_law(count: int) -> None:
    """Each canary is remembered wholly or not at all; one time in twenty, or just less, none of them is."""
    share = 1 - 0.05 ** (1 / count) + 1e-9
    dice = np.random.default_rng(23)
    covered = [
        mean_upper_limit(np.where(dice.random(count) < share, MOST, 0.0).tolist(), MOST, confidence=0.95)
        >= share * MOST
        for _ in range(4000)
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 4000))


def test_the_upper_limit_is_nearly_as_low_as_any_can_be() -> None:
    """Without any exposure, p of the canaries may be remembered wholly for all (1 − p)^m ≥ 1 − confidence."""
    for count in (1, 10, 100):
        lowest = MOST * (1 - 0.05 ** (1 / count))
        assert mean_upper_limit([0.0] * count, MOST, confidence=0.95) == pytest.approx(lowest)
    assert mean_upper_limit([0.0, MOST], MOST, confidence=0.95) == MOST
    by_chance = mean_upper_limit(chance(np.random.default_rng(0), 300).tolist(), MOST, confidence=0.95)
    assert 1.44 < by_chance < 1.9
