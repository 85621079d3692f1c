"""The search for a setting, such as σ or the number of steps, at which a plan's ε meets a target."""

import math
from bisect import bisect_right
from collections.abc import Callable

Cost = Callable[[float], float]
"""Setting > 0 → ε."""

_LOG_CAP = 20.0
"""Ratios of costs are capped at e to this, since an infinite one would leave nothing to interpolate."""


def calibrate_noise(
    cost: Cost, target: float, *, start: float, cheapest: float, dearest: float, tolerance: float
) -> float | None:
    """The dearest setting whose cost is at most `target`; None where even `cheapest` costs more.

    The cost is taken to rise from `cheapest` to `dearest`, whichever of them is larger. The setting returned was
    tried: its cost lies at most the share `tolerance` below the target, or it is `dearest`.

    Args:
        start: The first setting tried, between the two.
    """
    from scipy.optimize import brentq

    bracket = _bracket(cost, target, start=start, cheapest=cheapest, dearest=dearest)
    if bracket is None:
        return None
    good, bad = bracket
    best, reached = good, cost(good)
    if good == bad or reached >= target * (1 - tolerance):
        return good

    def gap(log_setting: float) -> float:
        """ln of the cost over what is aimed at; 0, which ends the search, within the tolerance."""
        nonlocal best, reached
        value = cost(setting := math.exp(log_setting))
        if reached <= value <= target:
            best, reached = setting, value
        if target * (1 - tolerance) <= value <= target:
            return 0.0
        ratio = value / (target * (1 - tolerance / 2))
        return max(-_LOG_CAP, min(_LOG_CAP, math.log(ratio))) if ratio > 0 else -_LOG_CAP

    brentq(gap, math.log(good), math.log(bad), xtol=1e-9)
    return best


def most_steps(cost: Cost, target: float, *, most: int) -> int | None:
    """The largest of 1, …, `most` whose cost, which rises, is at most `target`; None where that of 1 is more."""
    high = 1
    while high < most and cost(high) <= target:
        high = min(4 * high, most)
    return bisect_right(range(1, high + 1), target, lo=high // 4, key=cost) or None


def _bracket(cost: Cost, target: float, *, start: float, cheapest: float, dearest: float) -> tuple[float, float] | None:
    """Two settings, the first within the target and the second not, or both `dearest`."""
    last, within = start, cost(start) <= target
    limit = dearest if within else cheapest
    while last != limit:
        setting = min(last * 4, limit) if limit > last else max(last / 4, limit)
        if (cost(setting) <= target) != within:
            return (last, setting) if within else (setting, last)
        last = setting
    return (last, last) if within else None
