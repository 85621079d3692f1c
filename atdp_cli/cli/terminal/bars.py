"""Bars: how far a task is, how fast it goes, and how long it will take."""

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from atdp_cli.cli.terminal.escape import escaped

_REDRAWN = 0.1  # seconds: more often than that nobody looks, and drawing takes time from the task


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


class Bars:
    """One bar a task, on a terminal; elsewhere nothing, even where FORCE_COLOR asks for colour in a file."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8),
            _Done(),
            _Rate(),
            _Left(),
            TextColumn("{task.fields[detail]}", markup=False, table_column=Column(no_wrap=True)),
        )
        drawn = console.is_interactive and console.file.isatty()
        self._bars = Progress(*columns, console=console, disable=not drawn)
        self._tasks: dict[str, TaskID] = {}
        self._undrawn: dict[str, tuple[int, int | None, str]] = {}
        self._drawn = 0.0

    def advance(self, name: str, done: int, total: int | None, detail: str = "") -> None:
        """Say how far a task is; the first call begins it."""
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
