"""The layout of JSON Lines: one object a line, the text or the conversation in one of its fields."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from atdp_cli.corpus.conversation import Chat, Part, read_conversation
from atdp_cli.corpus.json_text import Value, after_space, object_members
from atdp_cli.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import OnError, display_name, read_lines, without_mark
from atdp_cli.files.documents import RepeatedKeyError

_ONE_A_LINE = "Each line must be one JSON object: jq -c '.[]' makes them of a list, jq -c . of indented objects."


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
            texts = _texts(text, members, where, selection)
            if conversations not in (None, texts.turns[0] >= 0):
                kinds = "a text, and a conversation" if conversations else "a conversation, and a text"
                problem = f"{where}: the field {selection.text_field} holds {kinds} in the lines before."
                raise InputError(problem, "Keep texts and conversations in files of their own.")
            conversations = texts.turns[0] >= 0
        except InputError as error:
            on_error(error)
            continue
        yield from texts.segments(record(id_), id_, before)
        before = text[texts.parts[-1].end :] + ending
    yield Segment(before, None)


def _members(line: str, where: str) -> dict[str, Value]:
    try:
        if not line.startswith("{", after_space(line, 0)):
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


_NAME_IT = "Name the field that holds the text with --text-field."

_FIELDS = {"messages": "messages", "conversations": "conversations", "completion": "prompt+completion"}
"""What to read where a row has such a field."""


def _texts(line: str, members: Mapping[str, Value], where: str, selection: Selection) -> Chat:
    """The texts of a record at their places in the line."""
    fields = selection.fields
    for field in fields:
        if field not in members:
            others = (f"Read its conversation with --text-field {_FIELDS[n]}." for n in _FIELDS if n in members)
            raise InputError(f"{where} has no field {field}.", next(others, _NAME_IT))
        if not isinstance(members[field][0], str | list):
            raise InputError(f"{where}: the field {field} is neither a string nor a list of messages.", _NAME_IT)
    value, start, end = members[fields[0]]
    if isinstance(value, str) and len(fields) == 1:
        return Chat(line, (Part(-1, "", value, start, end),))
    return read_conversation(line, members, fields, f"{where}: the field {selection.text_field}")
