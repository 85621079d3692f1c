"""The lower bound on ε from how often a test fires with a record and without it."""

import math

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

MISS = 0.025
"""Chance that one rate lies beyond its bound, so that ε's bound holds with 95 %."""


def smallest_rate(fired: float, runs: int) -> float:
    """The lower end of Clopper and Pearson's interval (1934)."""
    return float(stats.beta.ppf(MISS, fired, runs - fired + 1)) if fired > 0 else 0.0


def largest_rate(fired: float, runs: int) -> float:
    """The upper end of Clopper and Pearson's interval (1934)."""
    return float(stats.beta.ppf(1 - MISS, fired + 1, runs - fired)) if fired < runs else 1.0


def epsilon_bound(fired_with: float, fired_without: float, runs: int, delta: float) -> float:
    """The largest ε refuted: (ε, δ)-DP asks that P[fires with] ≤ e^ε·P[fires without] + δ; 0 where none is.

    Args:
        fired_with, fired_without: How often the test fired in `runs` runs of each.
    """
    power = smallest_rate(fired_with, runs) - delta
    return max(0.0, math.log(power / largest_rate(fired_without, runs))) if power > 0 else 0.0


def firing_rates(q: float, sigma: float, thresholds: Floats) -> tuple[Floats, Floats]:
    """P[x > t] with and without the record, shape of `thresholds`, for one step of the subsampled Gaussian.

    Along the record's direction and in units of C the step gives N(1, σ²) where the record is sampled, else
    N(0, σ²). The likelihood ratio of the two worlds, 1 − q + q·exp((2x − 1)/(2σ²)), rises with x, so by Neyman
    and Pearson no test is better than a threshold on x.
    """
    without = stats.norm.sf(thresholds / sigma)
    return (1 - q) * without + q * stats.norm.sf((thresholds - 1) / sigma), without


def best_threshold(q: float, sigma: float, delta: float, runs: int) -> float:
    """The threshold with the largest bound at the expected counts; nothing measured enters."""
    thresholds = np.linspace(0, 1 + 5 * sigma, 501)
    expected = zip(*firing_rates(q, sigma, thresholds), strict=True)
    bounds = [epsilon_bound(runs * fires, runs * without, runs, delta) for fires, without in expected]
    return float(thresholds[int(np.argmax(bounds))])
