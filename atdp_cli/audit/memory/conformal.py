"""Which records stand out against records that a model never read, at a false discovery rate.

A training record that the model does not remember scores like a held-out one: its place among the held-out scores is
uniform. So (1 + b) / (n + 1) is a p-value where b of n held-out records score at least as high.

    >>> conformal_p_values([2.5, 0.5], [1.0, 2.0, 0.0])
    array([0.25, 0.75])
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

Floats = npt.NDArray[np.float64]

DECIMALS = 12
"""Of adjusted p-values."""


def conformal_p_values(scores: Sequence[float] | Floats, held_out: Sequence[float] | Floats) -> Floats:
    """The p-value of each score by scores of records that the model never read; ties count against the model.

    Source: Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World.

    Args:
        scores: Of the records to test, shape [m]; none is NaN.
        held_out: Shape [n], n ≥ 1.

    Returns:
        In [1 / (n + 1), 1], shape [m].
    """
    ordered = np.sort(np.asarray(held_out, dtype=np.float64))
    at_least = ordered.size - np.searchsorted(ordered, np.asarray(scores, dtype=np.float64), side="left")
    p_values: Floats = (1 + at_least) / (1 + ordered.size)
    return p_values


def adjusted_p_values(p_values: Floats) -> Floats:
    """By Benjamini and Hochberg: the least false discovery rate at which each would be among the findings, shape [m].

    Over conformal p-values of independent records the rate holds: Bates et al. 2023, Testing for outliers with
    conformal p-values, Theorem 2.
    """
    if p_values.size == 0:
        return p_values
    adjusted: Floats = false_discovery_control(p_values, method="bh")
    # A rate that p · m / k equals would be missed by a last digit.
    return np.round(adjusted, DECIMALS)


def fewest_findings(tested: int, held_out: int, rate: float) -> int:
    """How many records must stand out together before any is significant: no p-value is below 1 / (n + 1).

    Args:
        tested, held_out: Records, m ≥ 0 and n ≥ 1.
        rate: Of false discoveries, in (0, 1).
    """
    return max(1, ceil(tested / (rate * (held_out + 1)) - 1e-9))
