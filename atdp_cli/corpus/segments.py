"""The layout of a corpus file: record texts and what is between them, in file order."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atdp_cli.corpus.conversation import Chat


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
        turn: Of a conversation: the text that this one is, or is a part of, from 0.
        role: Who speaks there.
        more: Whether the next segment is of the same conversation.
        label: What a detector reads before it: the key of a value of JSON.
        chat: Of the conversation, as `record.Record` has it.
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
    label: str = ""
    chat: "Chat | None" = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The way to cut a file into records: see `record.read_records`."""

    unit: str = "line"
    text_field: str = "text"
    id_field: str | None = None
    turns: str | None = None

    @property
    def fields(self) -> list[str]:
        """The fields of the text: one, or two joined by +, which hold what the user and what the assistant says."""
        return self.text_field.split("+")

    @property
    def key(self) -> str | None:
        """The field whose value is the record's id, in files with fields; None for the line or row number."""
        return self.id_field if self.unit == "line" else self.unit

    @property
    def joins_lines(self) -> bool:
        """Whether the segments of a record are lines of one text, so that a span may reach over several."""
        return self.unit in ("paragraph", "document")


LINES = Selection()
"""Every line, object or row is a record."""


def streams(selection: Selection) -> bool:
    """Whether a record's segments stand side by side in the file, so that it need not be held whole."""
    return selection.unit == "line" or selection.joins_lines


def record_numbers(selection: Selection) -> Callable[[str], int]:
    """Give the number of the record that the next object or row with an id belongs to."""
    if selection.unit == "line":
        count = itertools.count()
        return lambda _: next(count)
    known: dict[str, int] = {}
    return lambda id_: known.setdefault(id_, len(known))
