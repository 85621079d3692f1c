"""The layout of JSON Lines: one object a line, the text or the conversation in one of its fields."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import LONE_SURROGATE, OnError, decoded_lines, display_name, without_mark
from atdp_cli.files.json_text import RepeatedKeyError
from atdp_cli.text.corpus.conversation import check_alike, content_parts, content_places
from atdp_cli.text.corpus.json_places import Member, is_object, object_members
from atdp_cli.text.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.text.corpus.shards import lines_of


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text of a record, and where its JSON string stands in the line."""

    text: str
    start: int
    end: int
    turn: int = -1
    role: str = ""


def json_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """See `formats.read_segments`. A file holds texts or conversations, as its first record does."""
    before = ""
    record = record_numbers(selection)
    conversations: bool | None = None
    for number, line, ending in decoded_lines(lines_of(path, selection.shard), path, on_error):
        mark, text = without_mark(number, line)
        before += mark
        if not text.strip():
            before += text + ending
            continue
        where = f"{display_name(path)}: line {number}"
        try:
            id_, pieces = _json_record(text, where, selection, number)
            conversations = check_alike(conversations, pieces[0].turn >= 0, where, selection)
        except InputError as error:
            on_error(error)
            continue
        index, place = record(id_), 0
        for piece in pieces:
            here = before + text[place : piece.start]
            written = text[piece.start : piece.end]
            more = piece is not pieces[-1]
            yield Segment(here, piece.text, index, id_, written, _spelled, turn=piece.turn, role=piece.role, more=more)
            before, place = "", piece.end
        before = text[place:] + ending
    yield Segment(before, None)


def _spelled(text: str) -> str:
    # A lone surrogate has no UTF-8; JSON can only write it as an escape.
    quoted = json.dumps(text, ensure_ascii=False)
    return LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _json_record(line: str, where: str, selection: Selection, number: int) -> tuple[str, list[_Piece]]:
    """A record's id and its texts."""
    members = _members(line, where)
    field = selection.text_field
    if len({name for name, *_ in members}) != len(members):
        count = sum(name == field for name, *_ in members)
        what = f"the field {field}" if count > 1 else "a key"
        raise InputError(f"{where} has {what} more than once.", "Keep one of them.")
    texts = [member for member in members if member[0] == field]
    if not texts:
        chat = any(name == "messages" for name, *_ in members)
        raise InputError(
            f"{where} has no field {field}.",
            "Read its conversation with --text-field messages."
            if chat
            else "Name the field that holds the text with --text-field.",
        )
    _, value, start, end = texts[0]
    if isinstance(value, list):
        parts = content_parts(value, f"{where}: the field {field}")
        places = content_places(line, start)
        pieces = [_Piece(part.text, *place, part.turn, part.role) for part, place in zip(parts, places, strict=True)]
    elif isinstance(value, str):
        pieces = [_Piece(value, start, end)]
    else:
        raise InputError(
            f"{where}: the field {field} is neither a string nor a list of messages.",
            "Name the field that holds the text with --text-field.",
        )
    key = selection.key
    return str(number) if key is None else _id(members, key, where), pieces


def _id(members: list[Member], key: str, where: str) -> str:
    values = [member[1] for member in members if member[0] == key]
    if not values:
        raise InputError(f"{where} has no field {key}.", "Every object needs it; check the field's name.")
    [value] = values
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: the field {key} is neither a string nor a whole number.", "Use another field.")
    return str(value)


def _members(line: str, where: str) -> list[Member]:
    try:
        members = _scan_object(line)
    except RepeatedKeyError as error:
        raise InputError(f"{where} has a key more than once.", "Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON.", "Each line must be one JSON object.") from error
    if members is None:
        raise InputError(f"{where} is not a JSON object.", "Each line must be one JSON object.")
    return members


def _scan_object(line: str) -> list[Member] | None:
    if not is_object(line):
        json.loads(line)
        return None
    members, end = object_members(line)
    if end != len(line):
        raise ValueError
    return members
