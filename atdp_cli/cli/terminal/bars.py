"""Bars, or lines where there is no terminal: how far a task is, how fast it goes, and how long it will take."""

import sys
import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from atdp_cli.cli.terminal.escape import escaped

_REDRAWN = 0.1  # seconds: more often than that nobody looks, and drawing takes time from the task

_SAID = 10.0  # seconds between the lines of a task where nothing is drawn, and before its first


_FIRST_WORDS = ("detect", "plant")
"""Tasks whose beginning is the first word of a command in a pipe, before spaCy or torch is loaded."""


class _Done(ProgressColumn):
    """`1,200 of 67,000`, or `1,200` where nobody knows of how many."""

    def render(self, task: Task) -> Text:
        """The column of one task."""
        return Text(f"{task.completed:,.0f}" + ("" if task.total is None else f" of {task.total:,.0f}"))


class _Rate(ProgressColumn):
    """`52/s`: over the whole task once it is done, over the last half minute before."""

    def render(self, task: Task) -> Text:
        """The column of one task."""
        rate = task.finished_speed or task.speed
        if rate is None:
            return Text("")
        return Text(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")


class _Left(ProgressColumn):
    """`0:12:33 left`; nothing where it is not known."""

    def render(self, task: Task) -> Text:
        """The column of one task."""
        if task.finished or task.time_remaining is None:
            return Text("")
        return Text(f"{timedelta(seconds=int(task.time_remaining))} left")


class Pace:
    """Tokens a second since this was made."""

    def __init__(self) -> None:
        self._began, self._tokens = time.monotonic(), 0

    def after(self, tokens: int) -> float:
        """The pace once these tokens are done too."""
        self._tokens += tokens
        return self._tokens / max(time.monotonic() - self._began, 1e-9)


class _Line:
    """When to say how far a task is, where nothing is drawn.

    Args:
        done: How much was done before it went on here.
    """

    def __init__(self, done: int) -> None:
        self._before, self._began = done, time.monotonic()
        self._said = self._began

    def after(self, done: int, total: int | None) -> str | None:
        """What to say once so much is done; None for nothing. The time left is at the mean pace since it began here."""
        now = time.monotonic()
        if now - self._said < _SAID or done == total:
            return None
        self._said = now
        if total is None:
            return f"{done:,}"
        if done <= self._before:
            return f"{done:,} of {total:,}"
        left = timedelta(seconds=int((now - self._began) * (total - done) / (done - self._before)))
        return f"{done:,} of {total:,}, about {left} left"


class Bars:
    """One bar a task, on a terminal; elsewhere a line every ten seconds, whatever FORCE_COLOR asks for in a file."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8),
            _Done(),
            _Rate(),
            _Left(),
            TextColumn("{task.fields[detail]}", markup=False, table_column=Column(no_wrap=True)),
        )
        self._console = console
        self._on_terminal = console.is_interactive and console.file.isatty()
        # Only on one screen with the bars is standard output Rich's: elsewhere it goes where it was sent.
        self._bars = Progress(
            *columns, console=console, disable=not self._on_terminal, redirect_stdout=sys.stdout.isatty()
        )
        self._lines: dict[str, _Line] = {}
        self._tasks: dict[str, TaskID] = {}
        self._undrawn: dict[str, tuple[int, int | None, str]] = {}
        self._drawn = 0.0

    @property
    def drawn(self) -> bool:
        """Whether tasks are drawn as bars, and not said in lines."""
        return self._on_terminal

    def advance(self, name: str, done: int, total: int | None, detail: str = "") -> None:
        """Say how far a task is; the first call begins it."""
        if not self._on_terminal:
            if done == 0 and name in _FIRST_WORDS:
                self._console.print("Reading." if total is None else f"Reading {total:,} records.")
            if (text := self._lines.setdefault(name, _Line(done)).after(done, total)) is not None:
                self._console.print(f"{escaped(name)}: {text}.", soft_wrap=True)
            return
        if name not in self._tasks:
            # Not before there is something to show: a run that ends at once shall leave no blank line.
            self._bars.start()
            self._tasks[name] = self._bars.add_task(escaped(name), total=total, detail="")
        self._undrawn[name] = (done, total, escaped(detail))
        if done == total or time.monotonic() - self._drawn >= _REDRAWN:
            self._draw()

    def _draw(self) -> None:
        for name, (done, total, detail) in self._undrawn.items():
            self._bars.update(self._tasks[name], completed=done, total=total, detail=detail)
        self._undrawn.clear()
        self._drawn = time.monotonic()

    def stop(self) -> None:
        """Leave the bars as they are now."""
        if self._tasks:
            self._draw()
            self._bars.stop()
