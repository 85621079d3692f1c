"""Ratios of a system's figures to those of `no-dp`, seed by seed."""

import math
from collections.abc import Sequence

import numpy as np

from examples.experiments.table import Measured

Share = dict[str, float]
"""The mean, and where there is more than one seed `low` and `high`, its 95 % interval."""


def share(values: Sequence[float], others: Sequence[float]) -> Share:
    """The geometric mean of the seeds' ratios, with a 95 % interval by Student's t."""
    from scipy.stats import t

    logs = np.log(np.array(values) / np.array(others))
    middle = float(logs.mean())
    ends = {"mean": middle}
    if logs.size > 1:
        half = float(t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / logs.size**0.5)
        ends |= {"low": middle - half, "high": middle + half}
    return {name: round(math.exp(value), 4) for name, value in ends.items()}


def with_interval(value: Share, digits: int) -> str:
    """As a table shows it."""
    mean = f"{value['mean']:.{digits}f}"
    return f"{mean} ({value['low']:.{digits}f} to {value['high']:.{digits}f})" if "low" in value else mean


def perplexity_share(runs: Sequence[Measured], plain: Sequence[Measured], tokens: str) -> Share:
    """Of held-out perplexity.

    Args:
        runs, plain: Of the system and of `no-dp`, in the order of the seeds.
        tokens: `all`, `sensitive` or `other`.
    """
    values = [[getattr(run.perplexity, tokens) or math.nan for run in side] for side in (runs, plain)]
    return share(*values)
