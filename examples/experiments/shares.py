"""Ratios of a system's figures to those of `no-dp`, seed by seed."""

import math
from collections.abc import Sequence

import numpy as np

from examples.experiments.table import Measured

Share = dict[str, float]
"""Mean, low and high: a ratio and its 95 % interval."""


def share(values: Sequence[float], others: Sequence[float]) -> Share:
    """The geometric mean of the seeds' ratios, with a 95 % interval by Student's t."""
    from scipy.stats import t

    logs = np.log(np.array(values) / np.array(others))
    half = float(t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / logs.size**0.5) if logs.size > 1 else math.nan
    middle = float(logs.mean())
    return {
        name: round(math.exp(value), 4)
        for name, value in (("mean", middle), ("low", middle - half), ("high", middle + half))
    }


def perplexity_share(runs: Sequence[Measured], plain: Sequence[Measured], tokens: str) -> Share:
    """Of held-out perplexity.

    Args:
        runs, plain: Of the system and of `no-dp`, in the order of the seeds.
        tokens: `all`, `sensitive` or `other`.
    """
    found = [[getattr(run.perplexity, tokens) or math.nan for run in side] for side in (runs, plain)]
    return share(*found)
