"""Intervals for a mean over canaries."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


def bootstrap(clusters: Sequence[Floats], *, resamples: int = RESAMPLES) -> Interval:
    """A 95 % percentile interval for the mean over all: repetitions are drawn with replacement, then canaries in each.

    With one repetition it is the plain bootstrap over its canaries.
    Source: Davison and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8.

    Args:
        clusters: One array a repetition, all of one length.
    """
    dice = np.random.default_rng(0)
    values = np.stack(clusters)
    seeds, canaries = values.shape
    chosen = dice.integers(seeds, size=(resamples, seeds, 1))
    within = dice.integers(canaries, size=(resamples, seeds, canaries))
    low, high = np.percentile(values[chosen, within].mean(axis=(1, 2)), [2.5, 97.5])
    return float(low), float(high)
