"""Measured noise and samples against their laws: a sound run is never suspected, another scale always."""

import numpy as np
import pytest
from scipy import stats

from atdp_cli.hardening.verify_run import FALSE_ALARM, first_broken, noise_test, sample_test

RUNS = 20_000
LEVEL = 1e-4


@pytest.mark.parametrize("coordinates", [1, 2, 40_320, 5 * 10**6, 2 * 10**9])
def test_figures_of_sound_noise_are_uniform(coordinates: int) -> None:
    squares = np.random.default_rng(coordinates).chisquare(coordinates, RUNS) * 0.25**2
    actual = [
        noise_test("a", squares=square, coordinates=coordinates, standard_deviation=0.25).p
        for square in squares.tolist()
    ]
    assert stats.kstest(actual, "uniform").pvalue > LEVEL


@pytest.mark.ci
@pytest.mark.parametrize("draws", [10**4, 10**8])
def test_figures_of_a_sound_sample_are_never_smaller_than_uniform(draws: int) -> None:
    drawn = np.random.default_rng(draws).binomial(draws, 0.1, RUNS)
    actual = np.array([sample_test("a", drawn=count, draws=draws, sampling_rate=0.1).p for count in drawn.tolist()])
    for level in (0.5, 0.1, 0.01, 0.001):
        assert (actual <= level).mean() <= level + 5 * (level / RUNS) ** 0.5
        assert (actual <= level).mean() >= 0.8 * level - 5 * (level / RUNS) ** 0.5


def test_the_tail_of_one_number_is_that_of_the_normal() -> None:
    for size in (0.01, 1.0, 7.5, 12.0):
        actual = noise_test("a", squares=size**2, coordinates=1, standard_deviation=1.0).p
        both = min(float(2 * stats.norm.sf(size)), float(1 - 2 * stats.norm.sf(size)))
        assert actual == pytest.approx(2 * both, rel=1e-9)


@pytest.mark.parametrize("coordinates", [5_000, 10**6, 10**9])
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.5**0.5, 2**0.5, 100.0])
def test_another_scale_and_noise_on_half_of_the_coordinates_are_found(coordinates: int, scale: float) -> None:
    check = noise_test("a", squares=scale**2 * coordinates, coordinates=coordinates, standard_deviation=1.0)
    assert first_broken([check] * 10**6) is check


def test_no_noise_on_a_single_number_is_found() -> None:
    check = noise_test("a", squares=0.0, coordinates=1, standard_deviation=20.0)
    assert first_broken([check]) is check


@pytest.mark.parametrize("drawn", [0, 500, 2000, 10_000])
def test_another_rate_is_found(drawn: int) -> None:
    check = sample_test("a", drawn=drawn, draws=10_000, sampling_rate=0.1)
    assert first_broken([check]) is check


def test_all_checks_of_a_run_share_the_level() -> None:
    fine = noise_test("a", squares=1.0, coordinates=1, standard_deviation=1.0)
    size = float(stats.norm.isf(0.2 * FALSE_ALARM))
    rare = noise_test("a", squares=size**2, coordinates=1, standard_deviation=1.0)
    assert 0.7 * FALSE_ALARM < rare.p < FALSE_ALARM
    assert first_broken([rare]) is rare
    assert first_broken([rare, fine]) is None
    assert first_broken([]) is None
