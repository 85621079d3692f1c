"""The time left by a stage's first steps: how often it holds, and what it says limits the run."""

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch

from atdp_cli.cli.terminal.estimate import FIRST_STEPS, StageEstimate, Usage, time_left, usage_now

RUNS = 2000


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have left something on a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def reads(seconds: Iterable[float], waiting: float = 0.0, faults: int = 0) -> Iterator[Usage]:
    """What the process has used after each step."""
    total, steps = 0.0, 0
    yield Usage(seconds=0.0, waited=0.0, faults=7)
    for each in seconds:
        total, steps = total + each, steps + 1
        yield Usage(seconds=total, waited=waiting * total, faults=7 + faults * steps)


def said(estimate: StageEstimate, steps: int) -> list[str]:
    """What is said over a whole stage."""
    return [text for step in range(1, steps + 1) if (text := estimate.after(steps - step)) is not None]


@pytest.mark.parametrize("left", [5, 100, 2000])
def test_the_time_that_is_left_is_in_the_range_nineteen_times_in_twenty(left: int) -> None:
    draw = np.random.default_rng(left)
    times = draw.normal(3.0, 0.4, size=(RUNS, FIRST_STEPS))
    # The sum of that many further steps.
    sums = draw.normal(3.0 * left, 0.4 * np.sqrt(left), size=RUNS)
    ranges = [time_left(row.tolist(), left) for row in times]
    inside = np.mean([low <= total <= high for (low, high), total in zip(ranges, sums, strict=True)])
    assert abs(inside - 0.95) < 3 * np.sqrt(0.95 * 0.05 / RUNS)


@pytest.mark.usefixtures("without_gpu")
def test_it_is_said_once_and_where_it_is_worth_it() -> None:
    assert said(StageEstimate(iter(reads([3.0] * 50)).__next__), 51) == [
        f"About 2.0 min left by its first 10 steps. Limit: the processor, {torch.get_num_threads()} thread (--threads)."
    ]
    assert said(StageEstimate(iter(reads([0.1] * 50)).__next__), 51) == []
    assert said(StageEstimate(iter(reads([3.0] * 50)).__next__), FIRST_STEPS) == []


def test_a_range_where_steps_differ() -> None:
    [text] = said(StageEstimate(iter(reads([30.0, 50.0] * 30)).__next__), 61)
    assert text.startswith("About 26 to 40 min left")
    [text] = said(StageEstimate(iter(reads([300.0, 310.0] * 100)).__next__), 201)
    assert text.startswith("About 16 h left")


@pytest.mark.parametrize(
    ("waiting", "faults", "limit"),
    [
        (0.02, 0, "the processor"),
        (0.35, 0, "other work on this machine, for which this run waits 35% of the time"),
        (0.35, 3, "memory, parts of which are read from disk (swap)"),
    ],
)
@pytest.mark.usefixtures("without_gpu")
def test_what_limits_it(waiting: float, faults: int, limit: str) -> None:
    [text] = said(StageEstimate(iter(reads([3.0] * 50, waiting, faults)).__next__), 51)
    assert f"Limit: {limit}" in text


def _spin(core: int, seconds: float) -> None:
    os.sched_setaffinity(0, {core})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.ci
@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this system does not say who waits")  # noqa: PTH110
def test_a_busy_core_is_noticed() -> None:
    """On one core with another process that never sleeps, this one waits about half of the time."""
    context = multiprocessing.get_context("spawn")
    done: list[float] = []
    cores = os.sched_getaffinity(0)
    other = context.Process(target=_spin, args=(min(cores), 60.0))
    try:
        other.start()
        os.sched_setaffinity(0, {min(cores)})
        time.sleep(2)
        before = usage_now()
        _spin(min(cores), 1.5)
        after = usage_now()
        done.append((after.waited - before.waited) / (after.seconds - before.seconds))
    finally:
        os.sched_setaffinity(0, cores)
        other.kill()
        other.join()
    assert done[0] > 0.25
