"""The layout of a corpus file: record texts and what is between them, in file order; and shards of a file."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from atdp_cli.errors import UsageError
from atdp_cli.files.corpus_file import compression_of, raw_lines

Item = TypeVar("Item")

Continues = Callable[[int, bytes], bool]
"""Says of each line in turn, by number and bytes, whether it continues the record of the line before."""

_WRITTEN = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1, of `of` parts of about equal size that follow one another.

    A record belongs to the part in which it begins, so that each is in exactly one; a part may have none.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise UsageError(f"--shard {self} is not a part of a corpus.", "Give I/N with 1 ≤ I ≤ N, such as 3/64.")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def stretch(self, size: int) -> range:
        """Which of `size` bytes, or rows, are the part's; the first byte is always the first part's."""
        return range(-(-size * (self.number - 1) // self.of), -(-size * self.number // self.of))


def parse_shard(written: str) -> Shard:
    """`3/64` as a shard.

    Raises:
        UsageError: It is none.
    """
    match = _WRITTEN.fullmatch(written)
    if match is None:
        raise UsageError(f"--shard {written} is not a part of a corpus.", "Give I/N with 1 ≤ I ≤ N, such as 3/64.")
    return Shard(int(match[1]), int(match[2]))


def bytes_of(path: Path, shard: Shard) -> range:
    """The shard's bytes of a file's content; what is compressed is unpacked once to know its size.

    Raises:
        InputError: As for `raw_lines`.
    """
    size = sum(len(raw) for _, raw in raw_lines(path)) if compression_of(path) else path.stat().st_size
    return shard.stretch(size)


def lines_of(
    path: Path, shard: Shard | None, continues: Continues = lambda _, __: False
) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, or of those records of it that begin in the shard; numbers are the whole file's.

    Raises:
        InputError: As for `raw_lines`.
    """
    if shard is None:
        return raw_lines(path)
    return in_range(_placed(raw_lines(path), continues), bytes_of(path, shard))


def _placed(lines: Iterable[tuple[int, bytes]], continues: Continues) -> Iterator[tuple[int, tuple[int, bytes]]]:
    place = begins = 0
    for number, raw in lines:
        if not continues(number, raw):
            begins = place
        yield begins, (number, raw)
        place += len(raw)


def in_range(placed: Iterable[tuple[int, Item]], stretch: range) -> Iterator[Item]:
    """The items whose place, which never falls, lies in the stretch; nothing behind it is read."""
    for place, item in placed:
        if place >= stretch.stop:
            return
        if place >= stretch.start:
            yield item


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of record text at its place in the file.

    Attributes:
        before: Characters of the file between the previous segment and this one.
        text: The record text here, decoded; None for the end of the file.
        record: Which record the segment belongs to, counted from 0 in order of first appearance.
        id: The record's id.
        written: The text as it stands in the file, where that can differ from `text`.
        spelled: Gives another text as it would stand here.
        row: Parquet, which has rows in place of characters: the row, from 0.
        turn: Of a conversation: the message that the text belongs to, from 0.
        role: Who speaks there.
        more: Whether the next segment is of the same conversation.
    """

    before: str
    text: str | None
    record: int = -1
    id: str = ""
    written: str | None = None
    spelled: Callable[[str], str] = str
    row: int = -1
    turn: int = -1
    role: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """What makes a record of a file, and which part of them is read: see `record.read_records`."""

    unit: str = "line"
    text_field: str = "text"
    id_field: str | None = None
    shard: Shard | None = None
    turns: str | None = None

    @property
    def key(self) -> str | None:
        """Of files with fields: the one whose value is the record's id; None for the line or row number."""
        return self.id_field if self.unit == "line" else self.unit


LINES = Selection()
"""Every line, object or row is a record."""


def streams(selection: Selection) -> bool:
    """Whether a record's segments stand side by side in the file, so that it need not be held whole."""
    return selection.unit in ("line", "paragraph", "document")


def record_numbers(selection: Selection) -> Callable[[str], int]:
    """Gives the number of the record that the next object or row with an id belongs to."""
    if selection.unit == "line":
        count = itertools.count()
        return lambda _: next(count)
    known: dict[str, int] = {}
    return lambda id_: known.setdefault(id_, len(known))
