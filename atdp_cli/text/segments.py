"""The layout of a corpus file: record texts and the characters between them, in file order.

Reading and rewriting share this one parse, so a rewritten file can only differ inside record texts.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.text.files import check_readable, kind_of, read_lines, shown, without_mark

_WHITESPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of record text at its place in the file.

    Attributes:
        before: Characters of the file between the previous segment and this one.
        text: The record text here, decoded; None for the end of the file.
        record: Which record the segment belongs to, counted from 0 in order of first appearance.
        id: The record's id.
        quoted: Whether the file holds the text as a JSON string.
        written: The text as it stands in the file, where that differs from `text`.
    """

    before: str
    text: str | None
    record: int = -1
    id: str = ""
    quoted: bool = False
    written: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """What makes a record of a file: see `records.read_records`."""

    unit: str = "line"
    text_field: str = "text"
    id_field: str | None = None


def read_segments(path: Path, selection: Selection) -> Iterator[Segment]:
    """All segments in file order, ending with one whose text is None.

    Checks the path and the selection at once, the content while iterating.

    Raises:
        UsageError: The unit does not go with the format.
        InputError: See `records.read_records`.
    """
    check_readable(path)
    if kind_of(path) == "text":
        if selection.unit not in ("line", "paragraph", "document"):
            raise UsageError(
                f"--unit {selection.unit} names a field, and {shown(path)} is plain text.",
                "Use --unit line, paragraph or document, or a JSON Lines file (.jsonl).",
            )
        return _nonempty(_text_segments(path, selection.unit), path, "")
    if selection.unit in ("paragraph", "document"):
        raise UsageError(
            f"--unit {selection.unit} is for plain text, and {shown(path)} is JSON Lines.",
            "Use --unit line (one object a record) or the name of a field whose value groups objects.",
        )
    if selection.unit != "line" and selection.id_field is not None:
        raise UsageError("--id-field does not go with a --unit that names a field.", "Leave --id-field out.")
    return _nonempty(_json_segments(path, selection), path, f" in the field {selection.text_field}")


def _nonempty(segments: Iterator[Segment], path: Path, where: str) -> Iterator[Segment]:
    found = False
    for segment in segments:
        if segment.text is None and not found:
            raise InputError(f"{shown(path)} holds no records: no text{where}.", "Check that it is the right file.")
        found = True
        yield segment


def _text_segments(path: Path, unit: str) -> Iterator[Segment]:
    if unit == "document":
        yield from _document(path)
        return
    before, record, id_, within = "", -1, "", False
    for number, line, ending in read_lines(path):
        mark, text = without_mark(number, line)
        if not text.strip():
            before += line + ending
            within = False
            continue
        if unit == "line" or not within:
            record, id_, within = record + 1, str(number), True
        yield Segment(before + mark, text, record, id_)
        before = ending
    yield Segment(before, None)


def _document(path: Path) -> Iterator[Segment]:
    pieces: list[str] = []
    mark = ending = ""
    for number, line, line_ending in read_lines(path):
        found, text = without_mark(number, line)
        mark = mark or found
        pieces += (ending, text)
        ending = line_ending
    text = "".join(pieces)
    if text.strip():
        yield Segment(mark, text, 0, "1")
    yield Segment(ending, None)


def _json_segments(path: Path, selection: Selection) -> Iterator[Segment]:
    before = ""
    known: dict[str, int] = {}
    count = 0
    for number, line, ending in read_lines(path):
        mark, text = without_mark(number, line)
        before += mark
        if not text.strip():
            before += text + ending
            continue
        where = f"{shown(path)}: line {number}"
        value, start, end, id_ = _json_record(text, where, selection, number)
        record = count
        if selection.unit != "line":
            record = known.setdefault(id_, len(known))
        count += 1
        yield Segment(before + text[:start], value, record, id_, quoted=True, written=text[start:end])
        before = text[end:] + ending
    yield Segment(before, None)


def _json_record(line: str, where: str, selection: Selection, number: int) -> tuple[str, int, int, str]:
    """(text, start and end of its JSON string in `line`, id)."""
    members = _members(line, where)
    texts = [member for member in members if member[0] == selection.text_field]
    if not texts:
        raise InputError(
            f"{where} has no field {selection.text_field}.",
            "Name the field that holds the text with --text-field.",
        )
    if len(texts) > 1:
        raise InputError(f"{where} has the field {selection.text_field} more than once.", "Keep one of them.")
    _, text, start, end = texts[0]
    if not isinstance(text, str):
        raise InputError(
            f"{where}: the field {selection.text_field} is not a string.",
            "Name the field that holds the text with --text-field.",
        )
    key = selection.id_field if selection.unit == "line" else selection.unit
    return text, start, end, str(number) if key is None else _id(members, key, where)


def _id(members: list[tuple[str, object, int, int]], key: str, where: str) -> str:
    values = [member[1] for member in members if member[0] == key]
    if not values:
        raise InputError(f"{where} has no field {key}.", "Every object needs it; check the field's name.")
    value = values[-1]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: the field {key} is neither a string nor a whole number.", "Use another field.")
    return str(value)


def _members(line: str, where: str) -> list[tuple[str, object, int, int]]:
    """The members of a JSON object as (key, value, start, end), the positions being the value's in `line`."""
    try:
        members = _scan_object(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON.", "Each line must be one JSON object.") from error
    if members is None:
        raise InputError(f"{where} is not a JSON object.", "Each line must be one JSON object.")
    return members


def _scan_object(line: str) -> list[tuple[str, object, int, int]] | None:
    position = _skip(line, 0)
    if line[position : position + 1] != "{":
        json.loads(line)
        return None
    members: list[tuple[str, object, int, int]] = []
    position = _skip(line, position + 1)
    closed = line[position : position + 1] == "}"
    while not closed:
        _expect(line, position, '"')
        key, position = _value(line, position)
        position = _skip(line, position)
        _expect(line, position, ":")
        start = _skip(line, position + 1)
        value, end = _value(line, start)
        members.append((str(key), value, start, end))
        position = _skip(line, end)
        closed = line[position : position + 1] == "}"
        if not closed:
            _expect(line, position, ",")
            position = _skip(line, position + 1)
    if _skip(line, position + 1) != len(line):
        raise ValueError
    return members


def _value(line: str, position: int) -> tuple[object, int]:
    value, end = _DECODER.raw_decode(line, position)
    return value, end


def _skip(line: str, position: int) -> int:
    while position < len(line) and line[position] in _WHITESPACE:
        position += 1
    return position


def _expect(line: str, position: int, character: str) -> None:
    if line[position : position + 1] != character:
        raise ValueError
