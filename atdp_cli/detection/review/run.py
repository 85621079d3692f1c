"""`atdp review` as functions: go through a queue, decide, and keep queue and lists up to date."""

import itertools
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from atdp_cli.corpus.record import Record, select_records
from atdp_cli.corpus.segments import Selection
from atdp_cli.detection.review.queue import (
    Decision,
    Header,
    Queue,
    QueueEntry,
    QueuePosition,
    masked,
    read_queue,
    save_queue,
    writable,
)
from atdp_cli.detection.term_lists import add_line, check_list, line_at, literal, take_back, term_line
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import check_apart
from atdp_cli.files.corpus_file import STANDARD_INPUT, check_readable, compression_of, raise_error


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The lists that a review adds terms to."""

    allow: Path
    deny: Path


def lists_beside(queue: Path) -> Lists:
    """`queue.jsonl` → `queue.allow.txt` and `queue.deny.txt` in the same folder."""
    stem = queue.with_suffix("").stem if compression_of(queue) else queue.stem
    return Lists(allow=queue.with_name(f"{stem}.allow.txt"), deny=queue.with_name(f"{stem}.deny.txt"))


@dataclass(frozen=True, kw_only=True)
class PendingEntry:
    """What was marked in the current sentence before it is decided.

    Attributes:
        drop: Numbers of masks, from 1, with the line of the allow list for each.
        mark: The terms that the detector missed.
    """

    drop: tuple[tuple[int, str], ...] = ()
    mark: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Step:
    """How it was before a step, and what the step added to lists."""

    at: int
    pending: PendingEntry
    decision: Decision | None
    added: tuple[tuple[Path, bytes], ...] = ()


@dataclass(kw_only=True)
class Review:
    """A walk through a queue. What is decided is on disk before the next sentence is shown.

    Attributes:
        path: The queue's file.
        queue: The queue with all decisions so far.
        lists: The lists that it writes.
        data: Where the files of the corpus are now.
        todo: Which entries this walk asks about.
        at: How many of them are done.
        pending: What was marked in the current sentence.
    """

    path: Path
    queue: Queue
    lists: Lists
    data: tuple[Path, ...]
    todo: tuple[int, ...]
    at: int = 0
    pending: PendingEntry = field(default_factory=PendingEntry)
    _steps: list[_Step] = field(default_factory=list)
    _records: "_Records | None" = None

    @property
    def entry(self) -> QueueEntry | None:
        """The current sentence; None when there is no further one."""
        return self.queue.entries[self.todo[self.at]] if self.at < len(self.todo) else None

    @property
    def can_undo(self) -> bool:
        """Whether this walk has taken a step that can be taken back."""
        return bool(self._steps)

    def hidden(self, number: int) -> str:
        """Return what a mask of the current sentence hides, read from the corpus.

        Raises:
            InputError: There is no such mask, or the corpus is not there or has changed.
        """
        text, place = self._found(number)
        return text[place.start : place.end]

    def drop(self, *numbers: int) -> None:
        """Drop masks of the current sentence, since they hide nothing sensitive. All or none are dropped, in one step.

        Raises:
            InputError: As for `hidden`; or a span comes from a deny list, or is white space.
        """
        known = dict(self.pending.drop)
        lines = {number: self._dropped_line(number) for number in numbers if number not in known}
        if lines:
            self._pend(replace(self.pending, drop=(*self.pending.drop, *lines.items())))

    def _dropped_line(self, number: int) -> str:
        text, place = self._found(number)
        if self._entry().spans[number - 1].source == "deny":
            raise InputError(
                f"Mask {number} comes from a deny list, which wins over an allow list.", "Take the term out of it."
            )
        line = line_at(text, place.start, place.end)
        if line is None:
            raise InputError(f"Mask {number} hides white space.", "Leave it.")
        return line

    def mark(self, term: str) -> None:
        """Mark a visible term of the current sentence as sensitive.

        Raises:
            InputError: The term is not there as whole words, as the deny list looks for it.
        """
        term = " ".join(term.split())
        if not any(map(str.isalnum, term)) or not any(map(literal(term).search, self._entry().pieces())):
            raise InputError("That is not in the sentence as whole words.", "Copy it from there, outside the masks.")
        if term not in self.pending.mark:
            self._pend(replace(self.pending, mark=(*self.pending.mark, term)))

    def decide(self, verdict: Literal["reviewed", "skipped"]) -> None:
        """Finish the current sentence: write the lists and the queue, and move on. Skipping discards pending changes.

        Raises:
            InputError: A list cannot be read, or a folder is missing.
            RunError: A file cannot be written.
        """
        entry, pending = self._entry(), self.pending if verdict == "reviewed" else PendingEntry()
        lines = [(self.lists.allow, line) for _, line in pending.drop]
        lines += [(self.lists.deny, term_line(term)) for term in pending.mark]
        added = tuple((path, data) for path, line in lines if (data := add_line(path, line)))
        spans = [entry.spans[number - 1] for number, _ in pending.drop]
        drop = tuple(QueuePosition(start=span.start, end=span.end) for span in spans)
        step = _Step(at=self.at, pending=self.pending, decision=entry.decision, added=added)
        self._record(Decision(verdict=verdict, drop=drop, mark=pending.mark))
        self._steps.append(step)
        self.at, self.pending = self.at + 1, PendingEntry()

    def undo(self) -> None:
        """Undo the last step of this walk, and only what it added to the lists.

        Raises:
            InputError: There is none.
            RunError: A file cannot be written.
        """
        if not self._steps:
            raise InputError("There is nothing to undo in this session.", "Earlier decisions are in the queue file.")
        step = self._steps[-1]
        if step.at < self.at:
            for path, data in reversed(step.added):
                take_back(path, data)
            self.at = step.at
            self._record(step.decision)
        self.pending = step.pending
        del self._steps[-1]

    def _entry(self) -> QueueEntry:
        if self.entry is None:
            raise InputError("Every sentence has a decision.", "Undo, or quit.")
        return self.entry

    def _pend(self, pending: PendingEntry) -> None:
        self._steps.append(_Step(at=self.at, pending=self.pending, decision=self._entry().decision))
        self.pending = pending

    def _record(self, decision: Decision | None) -> None:
        at = self.todo[self.at]
        entries = list(self.queue.entries)
        entries[at] = entries[at].model_copy(update={"decision": decision})
        queue = replace(self.queue, entries=tuple(entries))
        save_queue(self.path, queue)
        self.queue = queue

    def _found(self, number: int) -> tuple[str, QueuePosition]:
        """The text of the current record, and a mask's place in it."""
        entry = self._entry()
        if not 1 <= number <= len(entry.spans):
            raise InputError(f"There is no mask {number} here.", "Give a number that stands in a mask.")
        if STANDARD_INPUT in self.data:
            raise InputError(
                "The corpus was read from standard input.", "Start again with --data and a file that holds it."
            )
        self._records = self._records or _Records(self.queue.header, self.data)
        record = self._records.at(entry.record)
        spans = entry.spans
        if (
            record is None
            or writable(record.id) != entry.id
            or max(entry.end, spans[-1].end) > len(record.text)
            or masked(record.text, entry.start, entry.end, spans) != entry.masked
        ):
            raise InputError("The corpus has changed since the queue was drawn.", "Name it as it was with --data.")
        return record.text, spans[number - 1]


class _Records:
    """A corpus read forward, and from its start again only where an earlier record is asked for."""

    def __init__(self, header: Header, data: Sequence[Path]) -> None:
        self._header, self._data = header, data
        self._rest: Iterator[Record] = iter(())
        self._read = 0
        self._last: Record | None = None

    def at(self, position: int) -> Record | None:
        """The record at a position, from 0; None where the corpus is shorter.

        Raises:
            InputError: The corpus cannot be read.
        """
        if position < self._read - 1 or self._read == 0:
            self._rest, self._read, self._last = self._open(), 0, None
        try:
            while self._read <= position:
                self._last = next(self._rest, None)
                self._read += 1
        except InputError:
            self._read = 0
            raise
        return self._last

    def _open(self) -> Iterator[Record]:
        header = self._header
        selection = Selection(header.unit, header.text_field, header.id_field, turns=header.turns)
        for path in self._data:
            yield from select_records(path, selection, (lambda _: None) if header.skip_bad else raise_error)


def open_review(
    path: Path, *, data: Sequence[Path] = (), allow: Path | None = None, deny: Path | None = None
) -> Review:
    """Begin to walk through a queue, or resume at the first sentence without a decision.

    Args:
        path: The queue's file.
        data: Where the files of the corpus are now; empty for where they were.
        allow: The list that dropped spans go to; None for the one beside the queue.
        deny: The list that missed terms go to; None for the one beside the queue.

    Raises:
        InputError: The queue, a list or `data` cannot be read.
        UsageError: Two of the files are one, or `data` is standard input.
    """
    if STANDARD_INPUT in (path, *data):
        raise UsageError("The answers are read from standard input.", "Give a file.")
    queue = read_queue(path)
    for file in data:
        check_readable(file)
    beside = lists_beside(path)
    lists = Lists(allow=allow or beside.allow, deny=deny or beside.deny)
    corpora = tuple(data) or tuple(map(Path, queue.header.corpora))
    check_apart(corpora, (path, lists.allow, lists.deny))
    check_list(lists.allow)
    check_list(lists.deny)
    todo = (at for at, entry in enumerate(queue.entries) if entry.decision is None)
    return Review(path=path, queue=queue, lists=lists, data=corpora, todo=tuple(todo))


def next_commands(review: Review) -> tuple[str, ...]:
    """Return the command lines that use the lists; none if the lists are empty."""
    header = review.queue.header
    used = [(name, path) for name, path in (("--allow", review.lists.allow), ("--deny", review.lists.deny))]
    lists = [word for name, path in used if path.exists() and path.stat().st_size for word in (name, str(path))]
    if not lists:
        return ()
    defaults = Header(corpora=header.corpora, tier=header.tier, review_share=header.review_share)
    reading = [("--privacy-unit", header.unit, defaults.unit), ("--text-field", header.text_field, defaults.text_field)]
    given = ["--set", f"run.turns={header.turns}"] if header.turns is not None else []
    given += ["--tier", header.tier.value]
    given += itertools.chain(*((name, value) for name, value, default in reading if value != default))
    given += itertools.chain(*((f"--{name}", value) for name, value in header.options.items()))
    corpora = list(map(str, review.data))
    data = itertools.chain(*(("--data", corpus) for corpus in corpora))
    return (
        *(shlex.join(["atdp", "detect", corpus, *given, *lists]) for corpus in corpora),
        f"atdp harden MODEL {shlex.join([*data, *given, *lists])}",
    )
