"""ε without amplification by sampling: what holds against an observer who learns which steps a record was in.

Given the set S of steps that drew the record, the run is one Gaussian mechanism with μ² = Σ_{t∈S} 1/σ_t², and S does
not depend on the record's content. So δ(ε) = E[δ_Gauss(μ, ε)] over S: over Binomial participations where all σ are
equal, and over the distribution of μ², on a grid and rounded up, where they are not.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from atdp_cli.privacy.adjacency import Adjacency, EqualSteps, shifted_steps
from atdp_cli.privacy.ledger import PrivateEvent
from atdp_cli.privacy.rng import Floats

POINTS_PER_RUN, MAX_POINTS = 1 << 12, 1 << 17
"""Grid points for μ². What a run adds to μ² is rounded up by less than one point."""

KEPT_POINTS = 1 << 12
"""The finished distribution is rounded up once more, to so many points."""

CUT = 1e-7
"""The share of δ that tails of the distribution of μ² may take; it is added to δ."""

INFINITE_ABOVE = 1e6
"""Larger ε count as infinite."""

FEW_ATOMS = 64
"""Up to so many atoms are added one by one; more go through a Fourier transform."""


def epsilon_without_amplification(
    events: Iterable[PrivateEvent], delta: float, adjacency: Adjacency = "zero-out"
) -> float:
    """ε at `delta` when the sample of every step is revealed; never below the true value."""
    runs = shifted_steps(events, adjacency)
    if not runs:
        return 0.0
    precisions, weights, lost = _precisions(runs, delta)

    def excess(epsilon: float) -> float:
        return float(np.dot(weights, gaussian_delta(np.sqrt(precisions), epsilon))) + lost - delta

    return _root(excess)


def gaussian_delta(mu: Floats, epsilon: float) -> Floats:
    """δ(ε) of the Gaussian mechanism with sensitivity/σ = μ ≥ 0: Balle and Wang 2018, Theorem 8."""
    from scipy.special import log_ndtr, ndtr

    deltas = np.zeros_like(mu)
    positive = mu > 0
    m = mu[positive]
    lower = np.exp(epsilon + log_ndtr(-m / 2 - epsilon / m))
    deltas[positive] = np.maximum(ndtr(m / 2 - epsilon / m) - lower, 0.0)
    return deltas


def _precisions(runs: tuple[EqualSteps, ...], delta: float) -> tuple[Floats, Floats, float]:
    """Values of μ², their probabilities, and the probability of larger values."""
    certain = math.fsum(steps / sigma**2 for q, sigma, steps in runs if q == 1)
    sampled = [run for run in runs if run.sampling_rate < 1]
    if not sampled:
        return np.array([certain]), np.ones(1), 0.0
    cut = CUT * delta / (len(sampled) + 1)
    if len(sampled) == 1:
        count, weights, lost = _atoms(sampled[0], cut)
        return certain + count / sampled[0].noise_multiplier ** 2, weights, lost
    points = min(POINTS_PER_RUN * len(sampled), MAX_POINTS)
    step = _ceiling(sampled, cut) / points
    # Rounding raises a value by less than one point a run. Larger values have a total probability below `cut`.
    highest = points + len(sampled)
    weights, lost = np.ones(1), cut
    for run in sampled:
        count, added, missing = _atoms(run, cut)
        atoms = np.ceil(count / run.noise_multiplier**2 / step).astype(np.int64)
        within = atoms <= highest
        weights = _convolved(weights, atoms[within], added[within])[: highest + 1]
        lost += missing
    block = max(1, points // KEPT_POINTS)
    # A value is rounded up to the end of its block; 0, where no step drew the record, stays 0.
    ends = -(-np.arange(len(weights)) // block) * block
    merged: Floats = np.bincount(ends, weights=weights).astype(np.float64)
    kept = merged > 0
    values: Floats = certain + step * np.flatnonzero(kept).astype(np.float64)
    return values, merged[kept], lost


def _atoms(run: EqualSteps, cut: float) -> tuple[Floats, Floats, float]:
    """Participations in a run, their probabilities, and the probability of more; the fewest are rounded up."""
    from scipy.stats import binom

    low, high = int(binom.ppf(cut, run.steps, run.sampling_rate)), int(binom.isf(cut, run.steps, run.sampling_rate))
    count = np.arange(max(low, 0), high + 1)
    weights = binom.pmf(count, run.steps, run.sampling_rate)
    weights[0] = binom.cdf(count[0], run.steps, run.sampling_rate)
    return count.astype(np.float64), weights, float(binom.sf(high, run.steps, run.sampling_rate))


def _ceiling(runs: list[EqualSteps], cut: float) -> float:
    """A value that μ² exceeds with probability at most `cut`, by Chernoff's bound."""
    most = sum(steps / sigma**2 for _, sigma, steps in runs)
    mean = sum(steps * q / sigma**2 for q, sigma, steps in runs)
    lowest = most
    for tilt in np.geomspace(1e-3, 1e3, 121) / mean:
        with np.errstate(over="ignore"):
            log_moment = sum(steps * np.log1p(q * np.expm1(tilt / sigma**2)) for q, sigma, steps in runs)
        lowest = min(lowest, float((log_moment - math.log(cut)) / tilt))
    return lowest


def _convolved(weights: Floats, atoms: npt.NDArray[np.int64], added: Floats) -> Floats:
    """The distribution of a sum: `weights` on 0, 1, 2, … and `added` on the ascending `atoms`."""
    size = len(weights) + int(atoms[-1])
    if len(atoms) <= FEW_ATOMS:
        total = np.zeros(size)
        for atom, weight in zip(atoms, added, strict=True):
            total[atom : atom + len(weights)] += weight * weights
        return total
    from scipy.signal import fftconvolve

    sparse = np.zeros(int(atoms[-1]) + 1)
    np.add.at(sparse, atoms, added)
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
        if high > INFINITE_ABOVE:
            return math.inf
    tolerance = 1e-9
    return float(brentq(excess, 0.0, high, xtol=tolerance / 2)) + tolerance
