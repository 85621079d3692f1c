"""Where the members of a JSON object and the items of an array stand in a line."""

import json
import re

from atdp_cli.files.json_text import unique_members

Member = tuple[str, object, int, int]
"""(key, value, start, end), the positions being the value's."""

_WHITESPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=unique_members)


def object_members(line: str, position: int = 0) -> tuple[list[Member], int]:
    """The members of the object that begins at or behind a position, and the place after it.

    Raises:
        ValueError, RecursionError: There is none, or it is no JSON, or an object in it has a key more than once.
    """
    members: list[Member] = []
    position = _after(line, position, "{")
    while not line.startswith("}", position):
        position = _after(line, position, ",") if members else position
        if not line.startswith('"', position):
            raise ValueError
        key, position = _DECODER.raw_decode(line, position)
        start = _after(line, position, ":")
        value, end = _DECODER.raw_decode(line, start)
        members.append((key, value, start, end))
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


def is_object(line: str) -> bool:
    """Whether the first character that is not white space begins an object."""
    return line.startswith("{", _skip(line, 0))


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
