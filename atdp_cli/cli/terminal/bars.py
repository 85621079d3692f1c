"""How far a task is: Rich's bars on a terminal, elsewhere a line every ten seconds."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from atdp_cli.cli.terminal.escape import escaped

SECONDS_BETWEEN_LINES = 10.0


class Bars:
    """One bar a task on a terminal, whatever FORCE_COLOR asks for in a file."""

    def __init__(self, console: Console) -> None:
        self._console, self._on_terminal = console, console.is_interactive and console.file.isatty()
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        # Only on one screen with the bars is standard output Rich's: elsewhere it goes where it was sent.
        self._bars = Progress(
            *columns, console=console, disable=not self._on_terminal, redirect_stdout=sys.stdout.isatty()
        )
        self._tasks: dict[str, TaskID] = {}
        self._said = time.monotonic()

    def advance(self, name: str, done: int, total: int | None) -> None:
        """Say how far a task is; the first call begins it."""
        if not self._on_terminal:
            if done != total and time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
                self._said = time.monotonic()
                of = "" if total is None else f" of {total:,}"
                self._console.print(f"{escaped(name)}: {done:,}{of}.", soft_wrap=True)
            return
        if name not in self._tasks:
            # Not before there is something to show: a run that ends at once shall leave no blank line.
            self._bars.start()
            self._tasks[name] = self._bars.add_task(escaped(name), total=total)
        self._bars.update(self._tasks[name], completed=done, total=total)

    def stop(self) -> None:
        """Leave the bars as they are now."""
        if self._tasks:
            self._bars.stop()
