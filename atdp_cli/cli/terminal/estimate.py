"""How long a stage will take, by its first steps, and what limits it."""

import time
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

FIRST_STEPS = 10
"""That are timed, after one that warms up."""

LEAST_SECONDS = 60.0
"""Of the steps that are left, for an estimate to be worth a line."""

STUDENT = 2.262
"""The 97.5 % point of Student's t with nine degrees of freedom."""

WAITING = 0.1
"""The share of time without a processor that is other work's doing."""

_SCHEDULED = Path("/proc/self/schedstat")


class Usage(NamedTuple):
    """What the process has used so far.

    Attributes:
        seconds: By the clock.
        waited: Seconds for which its main thread was ready and had no processor; 0 where the system does not say.
        faults: Pages that had to be read from disk.
    """

    seconds: float
    waited: float
    faults: int


def usage_now() -> Usage:
    """The usage of this process."""
    import resource

    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    try:
        waited = int(_SCHEDULED.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return Usage(seconds=time.monotonic(), waited=waited, faults=faults)


class StageEstimate:
    """The time that a stage takes, once its first steps are done.

    Args:
        usage: Reads what the process has used.
    """

    def __init__(self, usage: Callable[[], Usage] = usage_now) -> None:
        self._usage = usage
        self._read: list[Usage] = []

    def after(self, left: int) -> str | None:
        """What to say after a step, with so many left; None for nothing."""
        if len(self._read) > FIRST_STEPS:
            return None
        self._read.append(self._usage())
        if len(self._read) <= FIRST_STEPS:
            return None
        seconds = [later.seconds - earlier.seconds for earlier, later in zip(self._read, self._read[1:], strict=False)]
        low, high = time_left(seconds, left)
        if high < LEAST_SECONDS:
            return None
        return f"{_range(low, high)} left by its first {FIRST_STEPS} steps. Limit: {self._limit(sum(seconds))}."

    def _limit(self, seconds: float) -> str:
        """What the timed steps waited for."""
        import torch

        first, last = self._read[0], self._read[-1]
        if last.faults - first.faults >= FIRST_STEPS:
            return "memory, parts of which are read from disk (swap)"
        if (share := (last.waited - first.waited) / seconds) >= WAITING:
            return f"other work on this machine, for which this run waits {share:.0%} of the time"
        if torch.cuda.is_available() and torch.cuda.memory_allocated() > 0:
            return "the GPU"
        threads = torch.get_num_threads()
        return f"the processor, {threads} thread{'s' if threads > 1 else ''} (--threads)"


def time_left(seconds: list[float], left: int) -> tuple[float, float]:
    """Between what so many further steps lie with probability 0.95, if all are drawn from one normal distribution.

    Args:
        seconds: Of `FIRST_STEPS` steps.
        left: From 0.
    """
    middle = left * fmean(seconds)
    beside = STUDENT * stdev(seconds) * sqrt(left + left**2 / len(seconds))
    return max(0.0, middle - beside), middle + beside


def _range(low: float, high: float) -> str:
    """`About 7 to 9 min`."""
    unit, size = ("h", 3600) if high >= 5400 else ("min", 60)
    first, last = (f"{value / size:.{0 if value >= 10 * size else 1}f}" for value in (low, high))
    return f"About {first} {unit}" if first == last else f"About {first} to {last} {unit}"
