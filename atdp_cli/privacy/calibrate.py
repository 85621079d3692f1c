"""The setting, such as σ, at which a plan's ε meets a target."""

import math
from collections.abc import Callable

Cost = Callable[[float], float]
"""Setting > 0 → ε."""


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
    """The dearest setting whose cost is at most `target`; None where even `cheapest` costs more.

    The cost is taken to rise from `cheapest` to `dearest`, whichever of them is larger. The setting returned was
    tried: its cost lies at most the share `tolerance` below the target, or it is `dearest`, or (`whole`) the next
    whole number costs too much.

    Args:
        start: The first setting tried, between the two.
        whole: Only whole numbers are tried.
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
    last = (start, cost(start))
    within = last[1] <= target
    limit = dearest if within else cheapest
    while last[0] != limit:
        setting = min(last[0] * 4.0, limit) if limit > last[0] else max(last[0] / 4.0, limit)
        setting = float(round(setting)) if whole else setting
        trial = (setting, cost(setting))
        if (trial[1] <= target) != within:
            return (last, trial) if within else (trial, last)
        last = trial
    return (last, last) if within else None


def _close(good: float, bad: float, *, whole: bool) -> bool:
    return abs(good - bad) <= 1 if whole else abs(math.log(good / bad)) < 1e-9


def _interpolated(good: Trial, bad: Trial, target: float) -> float:
    """Where a power law through both meets the target, kept away from the ends."""
    fraction = math.log(target / good[1]) / math.log(bad[1] / good[1])
    return math.exp(math.log(good[0]) + min(max(fraction, 0.02), 0.98) * math.log(bad[0] / good[0]))
