"""Records: the privacy unit, read from a corpus. Reading and rewriting share one parser for each format."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from atdp_cli.corpus.conversation import Chat, TemplateInput
from atdp_cli.corpus.csv import separated_segments
from atdp_cli.corpus.jsonl import json_segments
from atdp_cli.corpus.parquet import parquet_segments
from atdp_cli.corpus.plain import parse_speakers, text_segments
from atdp_cli.corpus.segments import Segment, Selection, streams
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.corpus_file import (
    KIND_NAMES,
    Kind,
    OnError,
    check_readable,
    display_name,
    kind_of,
    raise_error,
)

Unit = str
"""The unit that makes one record: `line`, `paragraph`, `document`, or the name of a field or column."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A text of a conversation: who says it, and which characters of the record's text it is.

    Attributes:
        start, end: Code points, end exclusive; none where nothing is said.
        conversation: Which of the record's, from 0.
    """

    role: str
    start: int
    end: int
    conversation: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One privacy unit.

    Attributes:
        id: For a text file the number of the unit's first line, from 1; unique wherever the corpus's
            own ids are.
        text: The text, without its line ending; of a conversation its texts, a line feed between two, values of JSON
            behind their keys.
        turns: Of conversations: their texts, in order.
        borders: Where the line feeds are that join rows, messages and parts of a message, and keys. No span holds one.
        chats: Of each conversation: its line, where a chat template is given more than these texts with their roles.
    """

    id: str
    text: str
    turns: tuple[Turn, ...] = ()
    borders: tuple[int, ...] = ()
    chats: tuple[Chat | None, ...] = ()

    @property
    def conversations(self) -> tuple["Record", ...]:
        """The record with the turns of one conversation alone, for each; a chat template renders one at a time."""
        groups = itertools.groupby(self.turns, key=attrgetter("conversation"))
        return tuple(replace(self, turns=tuple(own)) for _, own in groups)

    @property
    def chat(self) -> Chat | None:
        """Of one conversation: its line, as in `chats`."""
        return self.chats[self.turns[0].conversation] if self.chats else None

    @property
    def texts(self) -> list[str]:
        """Of a conversation: what each turn says."""
        return [self.text[turn.start : turn.end] for turn in self.turns]

    def conversation(self, marked: Sequence[str] = ()) -> TemplateInput:
        """The messages and tools of a conversation, as a chat template is given them.

        Args:
            marked: What stands for each turn: a text, or in the line of a `Chat` the JSON of its part.
        """
        if self.chat is not None:
            said = zip(self.chat.whole(), self.texts, strict=True)
            return self.chat.conversation(marked or [part.written(self.chat.line, text) for part, text in said])
        contents = zip(self.turns, marked or self.texts, strict=True)
        return {"messages": [{"role": turn.role, "content": text} for turn, text in contents]}

    @property
    def canonical(self) -> str:
        """The text, and of conversations who says what, by which two runs tell whether a record is the same."""
        if not self.turns:
            return self.text
        said = [
            [[turn.role, text] for turn, text in zip(one.turns, one.texts, strict=True)]
            if one.chat is None
            else one.conversation()
            for one in self.conversations
        ]
        return json.dumps(said if len(said) > 1 else said[0])


def read_records(
    path: Path,
    *,
    unit: Unit = "line",
    text_field: str = "text",
    id_field: str | None = None,
    on_error: OnError = raise_error,
    turns: str | None = None,
) -> Iterator[Record]:
    """The records of a corpus, in file order.

    Plain text (any suffix but those below, and `-` for standard input): `line` is every line that is not
    blank, byte for byte without its ending ("\\n" or "\\r\\n", nothing else ends a line); `paragraph` is a
    run of such lines joined by "\\n"; `document` is the whole file with its endings, less the last one.
    A byte order mark belongs to no record. JSON Lines (`.jsonl`): with unit `line` each object is a record,
    its id being the value of `id_field` or the line number; with any other unit all objects that share
    that field's value are one record, their texts joined by "\\n" in order, or their conversations, and the value its
    id. CSV (`.csv`), TSV (`.tsv`) and Parquet (`.parquet`) likewise, with rows for objects and columns for fields; the
    number is that of the row's first line, or the row's in Parquet. Each but Parquet may be compressed (`.gz`, `.zst`).

    One line, row, paragraph or document is in memory at a time, of Parquet a row group; grouping by a field
    holds the whole corpus.
    The path and the options are checked at once, the content while iterating.

    Args:
        path: The corpus.
        unit: What one record is.
        text_field: The field or column that holds the text, a string.
        id_field: The field or column that holds the id, a string or whole number.
        on_error: Called for each line, object or row that cannot be read: raises, or skips it by returning.
        turns: What begins a message in the paragraphs of plain text, which are then conversations; see `speakers`.

    Raises:
        UsageError: The unit does not go with the format; `turns` with something
            else than paragraphs, or it names no role.
        InputError: A missing file or folder, damaged compression, a line that is not UTF-8 or not a JSON
            object, a missing or ill-typed field, a row that is not as wide as the header, or no records at all.
    """
    return select_records(path, Selection(unit, text_field, id_field, turns), on_error)


def select_records(path: Path, selection: Selection, on_error: OnError = raise_error) -> Iterator[Record]:
    """`read_records` for a `Selection`."""
    groups = grouped(read_segments(path, selection, on_error), selection)
    return (record_of(group, selection) for group in groups if group[0].text is not None)


def grouped(segments: Iterator[Segment], selection: Selection) -> Iterator[tuple[Segment, ...]]:
    """Segments record by record; the segment that ends the file comes last, alone."""
    if selection.unit == "line":
        group: list[Segment] = []
        for segment in segments:
            group.append(segment)
            if not segment.more:  # so that a record is given before the next line is read
                yield tuple(group)
                group = []
    elif streams(selection):
        for _, side_by_side in itertools.groupby(segments, key=lambda segment: segment.record):
            yield tuple(side_by_side)
    else:
        groups: dict[int, list[Segment]] = {}
        for segment in segments:
            groups.setdefault(segment.record, []).append(segment)
        end = groups.pop(-1)
        yield from map(tuple, groups.values())
        yield tuple(end)


def record_of(segments: tuple[Segment, ...], selection: Selection) -> Record:
    """Join segments to their record."""
    borders: list[int] = []
    place = 0
    for before, segment in itertools.pairwise((segments[0], *segments)):
        if segment is not segments[0]:
            borders += [place] if segment.turn != before.turn or not selection.joins_lines else []
            place += 1
        borders += range(place, place + len(segment.label))
        place += len(segment.label) + len(segment.text or "")
    text = "\n".join(segment.label + (segment.text or "") for segment in segments)
    begins = [True, *(not (segment.more or selection.joins_lines) for segment in segments[:-1])]
    chats = tuple(segment.chat for segment, first in zip(segments, begins, strict=True) if first)
    numbered = zip(itertools.accumulate(begins), segments, strict=True)
    return Record(segments[0].id, text, tuple(_turns(numbered)), tuple(borders), chats if any(chats) else ())


def _turns(numbered: Iterator[tuple[int, Segment]]) -> Iterator[Turn]:
    """The turns of segments, each with the number of its conversation, from 1."""
    place = 0
    for (number, turn), group in itertools.groupby(numbered, key=lambda each: (each[0], each[1].turn)):
        parts = [segment for _, segment in group]
        place += len(parts[0].label)
        end = place + sum(len(part.text or "") + 1 for part in parts) - 1
        if turn >= 0:
            yield Turn(parts[0].role, place, end, number - 1)
        place = end + 1


_LAYOUTS: dict[Kind, Callable[[Path, Selection, OnError], Iterator[Segment]]] = {
    "text": text_segments,
    "jsonl": json_segments,
    "csv": separated_segments,
    "tsv": separated_segments,
    "parquet": parquet_segments,
}


def read_segments(path: Path, selection: Selection, on_error: OnError = raise_error) -> Iterator[Segment]:
    """All segments in file order, ending with one whose text is None.

    Checks the path and the selection at once, the content while iterating. What `on_error` skips is in no
    segment, neither as text nor as what stands before one.

    Raises:
        UsageError: The unit does not go with the format.
        InputError: See `record.read_records`.
    """
    check_readable(path)
    kind = kind_of(path)
    _check_unit(path, selection)
    segments = _LAYOUTS[kind](path, selection, on_error)
    return _nonempty(segments, path, "" if kind == "text" else f" in the field {selection.text_field}")


def _check_unit(path: Path, selection: Selection) -> None:
    kind = kind_of(path)
    if selection.turns is not None:
        parse_speakers(selection.turns)
        if kind != "text" or selection.unit != "paragraph":
            raise UsageError(
                f"run.turns reads paragraphs of plain text, and {display_name(path)} is not read so.",
                "Use --privacy-unit paragraph and plain text, or leave run.turns out.",
            )
    if kind == "text":
        if selection.unit not in ("line", "paragraph", "document"):
            raise UsageError(
                f"--privacy-unit {selection.unit} names a field, and {display_name(path)} is plain text.",
                "Use --privacy-unit line, paragraph or document, or a corpus with fields (.jsonl, .csv, .parquet).",
            )
        return
    if selection.unit in ("paragraph", "document"):
        raise UsageError(
            f"--privacy-unit {selection.unit} is for plain text, and {display_name(path)} is {KIND_NAMES[kind]}.",
            "Use --privacy-unit line (one object or row a record) or the name of a field whose value groups them.",
        )
    if selection.unit != "line" and selection.id_field is not None:
        raise UsageError(
            "run.id-field does not go with a --privacy-unit that names a field.", "Leave run.id-field out."
        )


def _nonempty(segments: Iterator[Segment], path: Path, where: str) -> Iterator[Segment]:
    empty = True
    for segment in segments:
        if segment.text is None and empty:
            raise InputError(
                f"{display_name(path)} holds no records: no text{where}.", "Check that it is the right file."
            )
        empty = False
        yield segment
