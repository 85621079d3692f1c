"""The consoles: progress and tables on standard error, results on standard output, in plain words."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from atdp_cli.cli.escape import escaped, escaped_json, escaped_lines
from atdp_cli.cli.json_lines import EventLines, ProgressOption, counted_task, write_line
from atdp_cli.events import (
    AlreadyFinished,
    ChoiceWarning,
    CrossChecked,
    EpochDone,
    EpochRestored,
    Event,
    LearningRateChosen,
    Notify,
    Resumed,
    ReviewQueued,
    StageStarted,
    TrialDone,
)

if TYPE_CHECKING:
    from atdp_cli.decoys.run import DecoySummary
    from atdp_cli.detection.results import DetectionSummary, FlaggedSummary, RedactionSummary


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


class PlainConsole(Console):
    """A console that prints texts without markup or commands, and does not exit with 1 when its reader is gone.

    Every string that is printed, on its own or in a table, is one line and is escaped here; whoever wants several lines
    prints several. A `Text` is taken as it is, so what it is made of has to be escaped before.
    """

    def render_str(self, text: str, **settings: Any) -> Text:
        """A string as Rich renders it, without anything that would do something."""
        return super().render_str(escaped(text), **settings)

    def on_broken_pipe(self) -> None:
        """Raise the error: Rich would exit with 1, which means a failed audit here."""
        raise BrokenPipeError

    @classmethod
    def on(cls, **settings: Any) -> "PlainConsole":
        """A console that prints strings as they are, but for what `escaped` escapes."""
        return cls(markup=False, emoji=False, highlight=False, **settings)


def stderr_console(*, quiet: bool = False) -> Console:
    """The console on standard error."""
    return PlainConsole.on(stderr=True, quiet=quiet)


def stdout_console() -> Console:
    """The console on standard output, for tables that are the answer."""
    return PlainConsole.on()


def figure(value: float | None) -> str:
    """A figure for a table; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


WITHOUT_EDGES: dict[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
"""The settings of a table that is to be narrow."""


def make_table(
    head: Sequence[str | Column],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str | None = None,
    right: Iterable[int] = (),
    **settings: Any,
) -> Table:
    """A table with its title at the left.

    Args:
        right: Columns at the right, as figures are.
        settings: As `rich.table.Table` takes them.
    """
    table = Table(*head, title=title, title_justify="left", **settings)
    for column in right:
        table.columns[column].justify = "right"
    for row in rows:
        table.add_row(*row)
    return table


def write_json(value: Any) -> None:
    """Write one JSON document to standard output; raise ValueError for NaN and infinity."""
    import json

    # In pieces, of which each has whole strings: that of a thousand audits has megabytes.
    pieces = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False).iterencode(value)
    sys.stdout.writelines(map(escaped_json, pieces))
    sys.stdout.write("\n")


class StandardOutput:
    """Standard output for data, such as a redacted corpus: as it is for a file or a pipe, escaped for a screen."""

    def write(self, data: bytes) -> int:
        """Write all of `data`, which is whole characters of UTF-8."""
        if not sys.stdout.isatty():
            return sys.stdout.buffer.write(data)
        sys.stdout.write(escaped_lines(data.decode("utf-8")))
        return len(data)


def _going_on(event: Resumed) -> str:
    where = (
        "after its last step"
        if event.stage > event.stages
        else f"after step {event.step:,} of stage {event.stage} of {event.stages}"
    )
    spent = f" {event.again:,} steps that are taken again are spent again." if event.again else ""
    return f"Going on {where}.{spent}"


@contextmanager
def progress(console: Console, how: ProgressOption) -> Iterator[Notify]:
    """A `notify` for people, or one that writes lines of JSON."""
    if how is ProgressOption.AUTO:
        with _for_people(console) as notify:
            yield notify
        return
    lines = EventLines(write_line)
    try:
        yield lines.tell
    finally:
        lines.flush()


@contextmanager
def _for_people(console: Console) -> Iterator[Notify]:
    """A `notify` that draws one bar a task and prints the rest."""
    bars = Bars(console)
    advance = bars.advance

    def notify(event: Event) -> None:
        if (counted := counted_task(event)) is not None:
            advance(*counted)
        match event:
            case StageStarted(stage=stage, steps=steps):
                advance(f"stage {stage}", 0, steps)
            case EpochDone(stage=stage, epoch=epoch, epochs=epochs):
                shown = (figure(event.all_tokens), figure(event.sensitive), figure(event.other))
                console.print(
                    f"{stage}, epoch {epoch} of {epochs}: held-out perplexity {{}} (sensitive {{}}, other {{}})".format(
                        *shown
                    )
                )
            case TrialDone(stage=stage, done=done, total=total):
                advance(f"trials for {stage}", done, total)
            case LearningRateChosen(stage=stage, learning_rate=rate):
                console.print(f"{stage}: the trials chose η = {rate:g}.")
            case EpochRestored(stage=stage, epoch=epoch):
                console.print(
                    f"{stage}: on decoyed text epoch {epoch} was better than the last, so its weights are kept."
                )
            case CrossChecked():
                console.print(
                    f"cross-check: {event.asked:,} sentences asked about, {event.known:,} with an answer at hand; "
                    f"{event.disagreements:,} disagreements, {event.unusable:,} of them answers that cannot be read.",
                    soft_wrap=True,
                )
            case ReviewQueued(queue=queue, sentences=sentences):
                console.print(f"{sentences} sentences to review: atdp review {queue}", soft_wrap=True)
            case AlreadyFinished(output=output):
                console.print(f"{output} is finished: nothing is left to resume.", soft_wrap=True)
            case Resumed():
                console.print(_going_on(event), soft_wrap=True)
            case ChoiceWarning(what=what, reason=reason):
                console.print(f"{what}: {reason}", soft_wrap=True)

    try:
        yield notify
    finally:
        bars.stop()


MAX_LABELS = 12


def show_found(summary: "DetectionSummary | RedactionSummary | DecoySummary", console: Console) -> None:
    """Print what of a corpus is flagged, and how much of it could not be read, if any."""
    show_flagged(summary.flagged, console)
    if summary.skipped:
        console.print(f"Lines or rows skipped as unreadable: {summary.skipped:,}.")


def show_flagged(flagged: "FlaggedSummary", console: Console) -> None:
    """Print how many spans have each label, the commonest first, with the shape of one; and a text that is too common.

    A shape has 0 for digits and a for letters.
    """
    if not flagged.spans or console.quiet:
        return
    commonest = list(flagged.by_label.items())[:MAX_LABELS]
    rows = [(label, f"{count:,}", flagged.shapes[label]) for label, count in commonest]
    console.print(make_table(("label", "spans", "shape of one"), rows, right=[1]))
    if len(flagged.by_label) > MAX_LABELS:
        console.print(f"And {len(flagged.by_label) - MAX_LABELS} more labels.")
    frequent = flagged.most_frequent
    if frequent is not None:
        console.print(
            f"One text of the form {frequent.shape} is {frequent.count:,} of the {flagged.spans:,} spans "
            f"({frequent.label}). If it only says who speaks: speaker_labels in --detector, which leaves "
            f"guarantees as they are. If the label is of no use: --exclude {frequent.label}. With --allow "
            "there is no guarantee."
        )
