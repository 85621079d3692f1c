"""`atdp review`: look at sampled sentences one by one, and correct the detector."""

import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from atdp_cli.cli.console import stderr_console, write_json
from atdp_cli.cli.help import OutputOptions
from atdp_cli.errors import InputError, UsageError
from atdp_cli.settings import Option, Options

if TYPE_CHECKING:
    from atdp_cli.detection.review.queue import QueueEntry
    from atdp_cli.detection.review.run import Review
    from atdp_cli.detection.review.summary import ReviewSummary

KEYS = "k  right as it stands, next     s  skip     u  undo     q  quit, resume later"
MASK_KEYS = "d N  drop mask N     r N  reveal mask N     m TEXT  mark a term that was missed"
TERM_KEYS = "m TEXT  mark a term that was missed"
LAST = "That was the last sentence.     u  undo     q or Enter  end"
LISTS = "Lists"

_NUMBERED = re.compile(r"([dr])((?:[\s,]*[0-9]{1,6})+)", re.IGNORECASE)
_JOINERS = "\u200c\u200d"


class ReviewOptions(Options):
    """The queue to review, and the lists to write."""

    data: Annotated[tuple[Path, ...], Option()] = ()
    """The corpus, if it is no longer where it was; only dropping and revealing read it. Repeat for several files, in
    the order in which they were read."""

    allow: Annotated[Path | None, Option(LISTS)] = None
    """The list that dropped terms are added to. Default: queue.allow.txt beside queue.jsonl."""

    deny: Annotated[Path | None, Option(LISTS)] = None
    """The list that missed terms are added to. Default: queue.deny.txt beside queue.jsonl."""


def review_command(
    queue: Annotated[Path, typer.Argument(metavar="QUEUE", help="The queue that atdp detect --review wrote.")],
    printing: OutputOptions,
    options: ReviewOptions,
) -> None:
    """Go through a sample of sentences: say which masks are wrong and what is missing. Answers come a line each.

    Every decision is saved at once, so the next call resumes where this one ended.
    """
    from atdp_cli.detection.review.run import open_review
    from atdp_cli.detection.review.summary import summarise

    walk = open_review(queue, **dict(options))
    console = stderr_console(quiet=printing.quiet)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    _walk(walk, console)
    summary = summarise(walk.queue, path=walk.path, allow=walk.lists.allow, deny=walk.lists.deny)
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    _say_summary(console, walk, summary)


def _walk(walk: "Review", console: Console) -> None:
    """Show sentences and take answers until the queue or the input ends."""
    shown = -1
    while walk.entry is not None or walk.can_undo:
        if shown != walk.at:
            _show(console, walk)
            shown = walk.at
        line = _ask(console)
        if line is None or line.lower() == "q" or (walk.entry is None and not line):
            return
        try:
            reply = _answer(walk, line)
        except (InputError, UsageError) as refused:
            reply = str(refused)
        for said in reply.splitlines():
            console.print(said, soft_wrap=True)


def _ask(console: Console) -> str | None:
    console.print("> ", end="")
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        console.print()
        raise
    if not (line.endswith("\n") and sys.stdin.isatty()):
        console.print()
    return line.strip() if line else None


def _answer(walk: "Review", line: str) -> str:
    """Carry out a line of input, and print what the next sentence does not show."""
    key, _, rest = line.partition(" ")
    if line.lower() in ("k", "s"):
        walk.decide("reviewed" if line.lower() == "k" else "skipped")
        return ""
    if line.lower() == "u":
        at = walk.at
        walk.undo()
        return _pending(walk) if at == walk.at else ""
    if numbered := _NUMBERED.fullmatch(line):
        numbers = dict.fromkeys(map(int, re.findall("[0-9]+", numbered[2])))
        if numbered[1].lower() == "r":
            return "\n".join(f"{number}: {printable(walk.hidden(number))}" for number in numbers)
        walk.drop(*numbers)
        return _pending(walk)
    if key.lower() == "m" and rest.strip():
        walk.mark(rest)
        return _pending(walk)
    return _keys(walk.entry)


def _pending(walk: "Review") -> str:
    """The decisions that k would write."""
    drops = ", ".join(str(number) for number, _ in walk.pending.drop)
    changes = [f"Drop mask {drops}." if drops else "", *(f"Mark {printable(term)}." for term in walk.pending.mark)]
    return " ".join(filter(None, changes)) + " Then k." if any(changes) else "Nothing is changed in this sentence now."


def printable(text: str) -> str:
    """The text without characters that move the cursor, turn the text's direction or look like nothing."""
    return "".join(
        mark if mark.isprintable() or mark in _JOINERS else " " if mark.isspace() else "\ufffd" for mark in text
    )


def _keys(entry: "QueueEntry | None") -> str:
    if entry is None:
        return LAST
    return f"{KEYS}\n{MASK_KEYS if entry.spans else TERM_KEYS}"


def _show(console: Console, walk: "Review") -> None:
    if walk.entry is not None:
        _show_sentence(console, walk, walk.entry)
    console.print()
    for keys in _keys(walk.entry).splitlines():
        console.print(keys, style="dim")
    if walk.pending.drop or walk.pending.mark:
        console.print(_pending(walk), soft_wrap=True)


def _show_sentence(console: Console, walk: "Review", entry: "QueueEntry") -> None:
    from atdp_cli.detection.review.queue import mask_of

    number = walk.todo[walk.at] + 1
    head = f"{number:,} of {len(walk.queue.entries):,} · {entry.stratum} · record {printable(entry.id)}"
    console.print()
    console.print(head, style="bold")
    console.print()
    masks = [printable(mask_of(at, span.label)) for at, span in enumerate(entry.spans, start=1)]
    pieces = list(map(printable, entry.pieces()))
    sentence = Text(pieces[0])
    for mask, piece in zip(masks, pieces[1:], strict=True):
        sentence.append(mask, style="reverse").append(piece)
    console.print(Padding(sentence, (0, 0, 0, 2), expand=False))
    if masks:
        sources = " · ".join(_by_source(entry))
        console.print(Padding(Text(printable(f"Found by: {sources}"), style="dim"), (1, 0, 0, 2), expand=False))


def _by_source(entry: "QueueEntry") -> list[str]:
    """Such as `ner 1, 3`, each source where its first mask stands."""
    numbers: dict[str, list[str]] = {}
    for at, span in enumerate(entry.spans, start=1):
        numbers.setdefault(span.source, []).append(str(at))
    return [f"{source} {', '.join(at)}" for source, at in numbers.items()]


def _say_summary(console: Console, walk: "Review", summary: "ReviewSummary") -> None:
    from atdp_cli.detection.review.run import next_commands

    console.print(
        f"Sentences: {summary.reviewed:,} reviewed, {summary.skipped:,} skipped, {summary.left:,} left. "
        f"Masks dropped: {summary.dropped:,}. Terms marked: {summary.marked:,}.",
        soft_wrap=True,
    )
    for sentence in summary.says():
        console.print(sentence)
    commands = next_commands(walk)
    if commands:
        console.print("Use the lists:")
    for command in commands:
        console.print(f"  {command}", soft_wrap=True)
