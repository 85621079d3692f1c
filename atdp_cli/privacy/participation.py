"""ε without amplification by sampling: what holds against an observer who learns which steps a record was in.

Given the set S of steps that drew the record, the run is one Gaussian mechanism with μ² = Σ_{t∈S} 1/σ_t², and S does
not depend on the record's content. So δ(ε) = E[δ_Gauss(μ, ε)] over S: over Binomial participations where all σ are
equal, and over the distribution of μ², on a grid and rounded up, where they are not.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from atdp_cli.privacy.adjacency import EqualSteps, equal_steps
from atdp_cli.privacy.ledger import PrivateEvent

Floats = npt.NDArray[np.float64]

POINTS_A_RUN, MOST_POINTS = 1 << 12, 1 << 17
"""Grid points for μ². A run's share is rounded up by less than one."""

KEPT_POINTS = 1 << 12
"""To so many points the finished distribution is rounded up once more."""

CUT = 1e-7
"""The share of δ that tails of the distribution of μ² may take; it is added to δ."""

LARGEST = 1e6
"""An ε above this is called infinite."""

FEW = 64
"""So many atoms are added one by one; more go through a Fourier transform."""


def epsilon_without_amplification(events: Iterable[PrivateEvent], delta: float) -> float:
    """ε at `delta` under zero-out adjacency when the sample of every step is revealed; never below the true value."""
    runs = equal_steps(events)
    if not runs:
        return 0.0
    precisions, weights, lost = _precisions(runs, delta)

    def excess(epsilon: float) -> float:
        return float(np.dot(weights, gaussian_delta(np.sqrt(precisions), epsilon))) + lost - delta

    return _root(excess)


def gaussian_delta(mu: Floats, epsilon: float) -> Floats:
    """δ(ε) of the Gaussian mechanism with sensitivity/σ = μ ≥ 0: Balle and Wang 2018, Theorem 8."""
    from scipy.special import log_ndtr, ndtr

    found = np.zeros_like(mu)
    some = mu > 0
    m = mu[some]
    lower = np.exp(epsilon + log_ndtr(-m / 2 - epsilon / m))
    found[some] = np.maximum(ndtr(m / 2 - epsilon / m) - lower, 0.0)
    return found


def _precisions(runs: tuple[EqualSteps, ...], delta: float) -> tuple[Floats, Floats, float]:
    """Values of μ², their probabilities, and the probability of what lies above them all."""
    sure = math.fsum(steps / sigma**2 for q, sigma, steps in runs if q == 1)
    sampled = [run for run in runs if run.sampling_rate < 1]
    if not sampled:
        return np.array([sure]), np.ones(1), 0.0
    cut = CUT * delta / (len(sampled) + 1)
    if len(sampled) == 1:
        count, weights, lost = _atoms(sampled[0], cut)
        return sure + count / sampled[0].noise_multiplier ** 2, weights, lost
    points = min(POINTS_A_RUN * len(sampled), MOST_POINTS)
    step = _ceiling(sampled, cut) / points
    # Rounding lifts a value by less than a point a run. What lies higher still is rarer than `cut` altogether.
    highest = points + len(sampled)
    weights, lost = np.ones(1), cut
    for run in sampled:
        count, added, missing = _atoms(run, cut)
        places = np.ceil(count / run.noise_multiplier**2 / step).astype(np.int64)
        within = places <= highest
        weights = _convolved(weights, places[within], added[within])[: highest + 1]
        lost += missing
    block = max(1, points // KEPT_POINTS)
    # A value goes to the end of its block, above it; 0, where no step drew the record, stays by itself.
    ends = -(-np.arange(len(weights)) // block) * block
    merged: Floats = np.bincount(ends, weights=weights).astype(np.float64)
    kept = merged > 0
    values: Floats = sure + step * np.flatnonzero(kept).astype(np.float64)
    return values, merged[kept], lost


def _atoms(run: EqualSteps, cut: float) -> tuple[Floats, Floats, float]:
    """Participations in a run, their probabilities, and the probability of more; few ones count as a few more."""
    from scipy.stats import binom

    low, high = int(binom.ppf(cut, run.steps, run.sampling_rate)), int(binom.isf(cut, run.steps, run.sampling_rate))
    count = np.arange(max(low, 0), high + 1)
    weights = binom.pmf(count, run.steps, run.sampling_rate)
    weights[0] = binom.cdf(count[0], run.steps, run.sampling_rate)
    return count.astype(np.float64), weights, float(binom.sf(high, run.steps, run.sampling_rate))


def _ceiling(runs: list[EqualSteps], cut: float) -> float:
    """A value that μ² passes with probability at most `cut`, by Chernoff's bound."""
    most = sum(steps / sigma**2 for _, sigma, steps in runs)
    mean = sum(steps * q / sigma**2 for q, sigma, steps in runs)
    lowest = most
    for tilt in np.geomspace(1e-3, 1e3, 121) / mean:
        with np.errstate(over="ignore"):
            log_moment = sum(steps * np.log1p(q * np.expm1(tilt / sigma**2)) for q, sigma, steps in runs)
        lowest = min(lowest, float((log_moment - math.log(cut)) / tilt))
    return lowest


def _convolved(weights: Floats, places: npt.NDArray[np.int64], added: Floats) -> Floats:
    size = len(weights) + int(places[-1])
    if len(places) <= FEW:
        found = np.zeros(size)
        for place, weight in zip(places, added, strict=True):
            found[place : place + len(weights)] += weight * weights
        return found
    from scipy.signal import fftconvolve

    sparse = np.zeros(int(places[-1]) + 1)
    np.add.at(sparse, places, added)
    # The transform leaves rounding errors of either sign around 1e-17, far below the δ that matter.
    transformed: Floats = np.maximum(fftconvolve(weights, sparse), 0.0)
    return transformed


def _root(excess: Callable[[float], float]) -> float:
    """The smallest ε ≥ 0 with an excess of at most 0, from above."""
    from scipy.optimize import brentq

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
        if high > LARGEST:
            return math.inf
    tolerance = 1e-9
    return float(brentq(excess, 0.0, high, xtol=tolerance / 2)) + tolerance
