"""Finding the setting at which a plan's ε meets a target."""

import math
from collections.abc import Callable

Cost = Callable[[float], float]
"""Setting above 0 → ε."""


def calibrate_noise(
    cost: Cost,
    target: float,
    *,
    start: float,
    cheapest: float,
    dearest: float,
    tolerance: float,
    whole: bool = False,
) -> float | None:
    """The dearest setting whose cost is at most `target`; None where that of `cheapest` is above it.

    The cost is taken to rise from `cheapest` to `dearest`, whichever of them is larger. What is returned was tried:
    its cost lies at most the share `tolerance` below the target, or it is `dearest`, or (`whole`) the next whole
    number costs too much.

    Args:
        start: Where to begin, between the two.
    """
    bracket = _bracket(cost, target, start=start, cheapest=cheapest, dearest=dearest, whole=whole)
    if bracket is None:
        return None
    (good, reached), (bad, passed) = bracket
    halve = False
    while reached < target * (1 - tolerance) and not _close(good, bad, whole=whole):
        middle = math.sqrt(good * bad)
        if not halve and reached > 0 and math.isfinite(passed):
            middle = _interpolated((good, reached), (bad, passed), target * (1 - tolerance / 2))
        if whole:
            middle = min(max(round(middle), min(good, bad) + 1), max(good, bad) - 1)
        value = cost(middle)
        # A step that leaves most of the bracket is followed by one that halves it.
        width = abs(math.log(good / bad))
        if value <= target:
            good, reached = middle, value
        else:
            bad, passed = middle, value
        halve = abs(math.log(good / bad)) > width / 2 and not halve
    return good


Trial = tuple[float, float]


def _bracket(
    cost: Cost, target: float, *, start: float, cheapest: float, dearest: float, whole: bool
) -> tuple[Trial, Trial] | None:
    """Two settings with their costs, the first within the target and the second not, or both `dearest`."""
    tried = (start, cost(start))
    dearer = tried[1] <= target
    limit, factor = (dearest, 4.0) if dearer else (cheapest, 4.0)
    while tried[0] != limit:
        following = _towards(tried[0], limit, factor, whole=whole)
        value = cost(following)
        if (value <= target) != dearer:
            return (tried, (following, value)) if dearer else ((following, value), tried)
        tried = (following, value)
    return (tried, tried) if dearer else None


def _towards(setting: float, limit: float, factor: float, *, whole: bool) -> float:
    following = min(setting * factor, limit) if limit > setting else max(setting / factor, limit)
    return float(round(following)) if whole else following


def _close(good: float, bad: float, *, whole: bool) -> bool:
    return abs(good - bad) <= 1 if whole else abs(math.log(good / bad)) < 1e-9


def _interpolated(good: Trial, bad: Trial, target: float) -> float:
    """Where a power law through both meets the target, kept off the ends."""
    share = math.log(target / good[1]) / math.log(bad[1] / good[1])
    return math.exp(math.log(good[0]) + min(max(share, 0.02), 0.98) * math.log(bad[0] / good[0]))
