"""The noise multipliers of a stage: the paper's Algorithm 1."""

import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.errors import UsageError
from atdp_cli.privacy import schedule
from atdp_cli.privacy.schedule import Constant, RiseReset, scaled, sigma_sequence


@given(
    st.floats(0.1, 100),
    st.floats(1, 3),
    st.tuples(st.floats(0.5, 1), st.floats(1, 2)),
    st.integers(1, 60),
    st.integers(0, 10),
)
def test_each_epoch_rises_by_the_jittered_factor_or_resets(
    start: float, sigma_growth: float, jitter: tuple[float, float], epochs: int, position: int
) -> None:
    shape = RiseReset(noise_multiplier=start, sigma_growth=sigma_growth, jitter=jitter)
    sigmas = sigma_sequence(shape, epochs, position=position)
    assert len(sigmas) == epochs
    assert sigmas[0] == start
    for before, after in pairwise(sigmas):
        lowest, highest = (before * sigma_growth * factor for factor in jitter)
        risen = lowest * (1 - 1e-12) <= after <= highest * (1 + 1e-12) and after <= 4 * start
        reset = after == start and highest > 4 * start
        assert risen or reset


def test_a_stage_has_its_own_public_jitter() -> None:
    shape = RiseReset(noise_multiplier=1.0)
    assert sigma_sequence(shape, 9, position=1) == sigma_sequence(shape, 9, position=1)
    assert sigma_sequence(shape, 9, position=1) != sigma_sequence(shape, 9, position=2)
    assert sigma_sequence(shape, 9, position=1) != sigma_sequence(shape, 9, position=1, jitter_seed=1)


def test_constant_noise_stays() -> None:
    assert sigma_sequence(Constant(noise_multiplier=0.7), 3, position=0) == (0.7, 0.7, 0.7)


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_scaling_keeps_the_shape(start: float, other: float) -> None:
    shape = RiseReset(noise_multiplier=start, sigma_max=3 * start)
    expected = [sigma * other / start for sigma in sigma_sequence(shape, 20, position=0)]
    assert sigma_sequence(scaled(shape, other), 20, position=0) == pytest.approx(expected)


def test_the_example_in_the_docstring_holds() -> None:
    assert doctest.testmod(schedule) == doctest.TestResults(failed=0, attempted=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"noise_multiplier": 0.0},
        {"noise_multiplier": float("nan")},
        {"noise_multiplier": float("inf")},
        {"noise_multiplier": 1.0, "sigma-growth": 0.9},
        {"noise_multiplier": 1.0, "jitter": (0.0, 1.0)},
        {"noise_multiplier": 1.0, "jitter": (1.1, 0.9)},
        {"noise_multiplier": 1.0, "sigma_max": 0.5},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        RiseReset(**settings)  # type: ignore[arg-type]
