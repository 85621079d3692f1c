"""The layout of JSON Lines: one object a line, the text or the conversation in one of its fields."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from atdp_cli.corpus.conversation import Part, check_alike, content_parts
from atdp_cli.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import LONE_SURROGATE, OnError, display_name, read_lines, without_mark
from atdp_cli.files.documents import RepeatedKeyError, unique_members

Value = tuple[object, int, int]
"""A value, and where it stands in its line."""

_WHITESPACE = re.compile(r"[ \t\n\r]*")

_ONE_A_LINE = "Each line must be one JSON object: jq -c '.[]' makes them of a list, jq -c . of indented objects."

_DECODER = json.JSONDecoder(object_pairs_hook=unique_members)


def object_members(line: str, position: int = 0) -> tuple[dict[str, Value], int]:
    """The members of the object that begins at or behind a position, and the place after it.

    Raises:
        RepeatedKeyError: It, or an object in it, has a key more than once.
        ValueError, RecursionError: There is none, or it is no JSON.
    """
    members: dict[str, Value] = {}
    position = _after(line, position, "{")
    while not line.startswith("}", position):
        position = _after(line, position, ",") if members else position
        if not line.startswith('"', position):
            raise ValueError
        key, position = _DECODER.raw_decode(line, position)
        if key in members:
            raise RepeatedKeyError
        start = _after(line, position, ":")
        value, end = _DECODER.raw_decode(line, start)
        members[key] = (value, start, end)
        position = _skip(line, end)
    return members, _after(line, position, "}")


def array_items(line: str, position: int) -> list[int]:
    """Where each item of the array begins that begins at a position.

    Raises:
        ValueError, RecursionError: There is none, or it is no JSON.
    """
    items: list[int] = []
    position = _after(line, position, "[")
    while not line.startswith("]", position):
        start = _after(line, position, ",") if items else position
        items.append(start)
        position = _skip(line, _DECODER.raw_decode(line, start)[1])
    return items


def _skip(line: str, position: int) -> int:
    """The place of the next character that is not white space."""
    white = _WHITESPACE.match(line, position)
    return white.end() if white else position


def _after(line: str, position: int, character: str) -> int:
    """The place after the next character, which must be this one, and the white space behind it."""
    position = _skip(line, position)
    if not line.startswith(character, position):
        raise ValueError
    return _skip(line, position + 1)


def json_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """Read the segments of a JSON Lines file, as `record.read_segments` does. A file holds texts or conversations, as
    its first record does.
    """
    before = ""
    record = record_numbers(selection)
    conversations: bool | None = None
    for number, line, ending in read_lines(path, on_error):
        mark, text = without_mark(number, line)
        before += mark
        if not text.strip():
            before += text + ending
            continue
        where = f"{display_name(path)}: line {number}"
        try:
            members = _members(text, where)
            id_ = str(number) if selection.key is None else _id(members, selection.key, where)
            pieces = _pieces(text, members, where, selection)
            conversations = check_alike(conversations, pieces[0][0].turn >= 0, where, selection)
        except InputError as error:
            on_error(error)
            continue
        index, place = record(id_), 0
        for rest, (part, (start, end)) in zip(range(len(pieces))[::-1], pieces, strict=True):
            here, written, more = before + text[place:start], text[start:end], rest > 0
            yield Segment(here, part.text, index, id_, written, _spelled, turn=part.turn, role=part.role, more=more)
            before, place = "", end
        before = text[place:] + ending
    yield Segment(before, None)


def _spelled(text: str) -> str:
    # A lone surrogate has no UTF-8; JSON can only write it as an escape.
    quoted = json.dumps(text, ensure_ascii=False)
    return LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _members(line: str, where: str) -> dict[str, Value]:
    try:
        if not line.startswith("{", _skip(line, 0)):
            json.loads(line)
            raise InputError(f"{where} is not a JSON object.", _ONE_A_LINE)
        members, end = object_members(line)
        if end != len(line):
            raise ValueError
    except RepeatedKeyError as error:
        raise InputError(f"{where} has a key more than once.", "Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON.", _ONE_A_LINE) from error
    return members


def _id(members: Mapping[str, Value], key: str, where: str) -> str:
    if key not in members:
        raise InputError(f"{where} has no field {key}.", "Every object needs it; check the field's name.")
    value, _, _ = members[key]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: the field {key} is neither a string nor a whole number.", "Use another field.")
    return str(value)


def _pieces(
    line: str, members: Mapping[str, Value], where: str, selection: Selection
) -> list[tuple[Part, tuple[int, int]]]:
    """The texts of a record, and where the JSON string of each stands in the line."""
    field = selection.text_field
    if field not in members:
        other = "Read its conversation with --text-field messages."
        remedy = other if "messages" in members else "Name the field that holds the text with --text-field."
        raise InputError(f"{where} has no field {field}.", remedy)
    value, start, end = members[field]
    if isinstance(value, list):
        parts = content_parts(value, f"{where}: the field {field}")
        return list(zip(parts, content_places(line, start), strict=True))
    if isinstance(value, str):
        return [(Part(-1, "", value), (start, end))]
    raise InputError(
        f"{where}: the field {field} is neither a string nor a list of messages.",
        "Name the field that holds the text with --text-field.",
    )


def content_places(line: str, position: int) -> Iterator[tuple[int, int]]:
    """Where the JSON string of each of `content_parts` stands in a line; of an empty list of parts, the list's start.

    Args:
        position: Where the list of messages begins, which `content_parts` has found sound.
    """
    for item in array_items(line, position):
        start, end = _member(line, item, "content")
        if line.startswith('"', start):
            yield start, end
            continue
        parts = array_items(line, start)
        yield from (_member(line, part, "text") for part in parts)
        if not parts:
            yield start, start


def _member(line: str, position: int, name: str) -> tuple[int, int]:
    _, start, end = object_members(line, position)[0][name]
    return start, end
