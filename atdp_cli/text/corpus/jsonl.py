"""The layout of JSON Lines: one object a line, the text in one of its fields."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import LONE_SURROGATE, OnError, decoded_lines, display_name, without_mark
from atdp_cli.files.json_text import RepeatedKeyError, unique_members
from atdp_cli.text.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.text.corpus.shards import lines_of

_WHITESPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=unique_members)


def json_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """See `formats.read_segments`."""
    before = ""
    record = record_numbers(selection)
    for number, line, ending in decoded_lines(lines_of(path, selection.shard), path, on_error):
        mark, text = without_mark(number, line)
        before += mark
        if not text.strip():
            before += text + ending
            continue
        try:
            value, start, end, id_ = _json_record(text, f"{display_name(path)}: line {number}", selection, number)
        except InputError as error:
            on_error(error)
            continue
        yield Segment(before + text[:start], value, record(id_), id_, text[start:end], _spelled)
        before = text[end:] + ending
    yield Segment(before, None)


def _spelled(text: str) -> str:
    # A lone surrogate has no UTF-8; JSON can only write it as an escape.
    quoted = json.dumps(text, ensure_ascii=False)
    return LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _json_record(line: str, where: str, selection: Selection, number: int) -> tuple[str, int, int, str]:
    """(text, start and end of its JSON string in `line`, id)."""
    members = _members(line, where)
    if len({name for name, *_ in members}) != len(members):
        count = sum(name == selection.text_field for name, *_ in members)
        what = f"the field {selection.text_field}" if count > 1 else "a key"
        raise InputError(f"{where} has {what} more than once.", "Keep one of them.")
    texts = [member for member in members if member[0] == selection.text_field]
    if not texts:
        raise InputError(
            f"{where} has no field {selection.text_field}.",
            "Name the field that holds the text with --text-field.",
        )
    _, text, start, end = texts[0]
    if not isinstance(text, str):
        raise InputError(
            f"{where}: the field {selection.text_field} is not a string.",
            "Name the field that holds the text with --text-field.",
        )
    key = selection.key
    return text, start, end, str(number) if key is None else _id(members, key, where)


def _id(members: list[tuple[str, object, int, int]], key: str, where: str) -> str:
    values = [member[1] for member in members if member[0] == key]
    if not values:
        raise InputError(f"{where} has no field {key}.", "Every object needs it; check the field's name.")
    [value] = values
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: the field {key} is neither a string nor a whole number.", "Use another field.")
    return str(value)


def _members(line: str, where: str) -> list[tuple[str, object, int, int]]:
    """The members of a JSON object as (key, value, start, end), the positions being the value's in `line`."""
    try:
        members = _scan_object(line)
    except RepeatedKeyError as error:
        raise InputError(f"{where} has a key more than once.", "Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON.", "Each line must be one JSON object.") from error
    if members is None:
        raise InputError(f"{where} is not a JSON object.", "Each line must be one JSON object.")
    return members


def _scan_object(line: str) -> list[tuple[str, object, int, int]] | None:
    if not line.startswith("{", _skip(line, 0)):
        json.loads(line)
        return None
    members: list[tuple[str, object, int, int]] = []
    position = _after(line, 0, "{")
    while not line.startswith("}", position):
        position = _after(line, position, ",") if members else position
        if not line.startswith('"', position):
            raise ValueError
        key, position = _DECODER.raw_decode(line, position)
        start = _after(line, position, ":")
        value, end = _DECODER.raw_decode(line, start)
        members.append((key, value, start, end))
        position = _skip(line, end)
    if _after(line, position, "}") != len(line):
        raise ValueError
    return members


def _skip(line: str, position: int) -> int:
    """The place of the next character that is not white space."""
    white = _WHITESPACE.match(line, position)
    return white.end() if white else position


def _after(line: str, position: int, character: str) -> int:
    """The place after the next character, which must be this one."""
    position = _skip(line, position)
    if not line.startswith(character, position):
        raise ValueError
    return _skip(line, position + 1)
