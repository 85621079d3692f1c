"""Progress for machines: each event as one line of JSON on standard error."""

import json
import math
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from atdp_cli.cli.escape import escaped_json
from atdp_cli.events import Event, NodesScored, RecordsRead, StepDone

INTERVAL = 0.1
"""The fewest seconds between two lines of one task: loops can step thousands of times a second."""


class ProgressOption(StrEnum):
    """The forms of a command's progress."""

    AUTO = "auto"
    JSON = "json"


def event_line(event: Event) -> str:
    """The event as one line of JSON, in ASCII, so that no locale can spoil it; without the line's end."""
    values = {name: _value(value) for name, value in vars(event).items()}
    return escaped_json(json.dumps({"event": event.name, "schema_version": 1, **values}, allow_nan=False))


def _value(value: Any) -> Any:
    """A value for JSON, which has neither infinity nor NaN: "inf" and null."""
    if not isinstance(value, float):
        return value
    from atdp_cli.files.documents import json_number

    return None if math.isnan(value) else json_number(value)


def write_line(line: str) -> None:
    """Write a line to standard error at once; nothing if that is closed."""
    if sys.stderr is not None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class EventLines:
    """Write events in their order. Of a task's counts those that follow too soon wait, and the latest is written.

    A count that waits is written before any other event, before the task begins anew, and at the end.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._waiting: dict[str, tuple[int, Event]] = {}
        self._written: dict[str, float] = {}

    def tell(self, event: Event) -> None:
        """Write an event now, or keep it for later."""
        counted = counted_task(event)
        if counted is None:
            self.flush()
            self._write(event_line(event))
            return
        task, done, total = counted
        reached, before = self._waiting.pop(task, (done, event))
        if reached > done:
            self._write(event_line(before))
        now = self._clock()
        if done == total or now - self._written.get(task, -math.inf) >= INTERVAL:
            self._write(event_line(event))
            self._written[task] = now
        else:
            self._waiting[task] = (done, event)

    def flush(self) -> None:
        """Write the events that were kept."""
        for _, event in self._waiting.values():
            self._write(event_line(event))
        self._waiting.clear()


def counted_task(event: Event) -> tuple[str, int, int | None] | None:
    """Task, done and total of an event that counts; None for any other."""
    match event:
        case RecordsRead(task=task, done=done, total=total):
            return task, done, total
        case NodesScored(model=model, done=done, total=total):
            return f"scoring {Path(model).name}", done, total
        case StepDone(stage=stage, step=step, steps=steps):
            return f"stage {stage}", step, steps
        case _:
            return None
