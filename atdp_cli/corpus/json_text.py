"""JSON as text: where its members, strings and numbers stand, so that they can be replaced and nothing else."""

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from atdp_cli.files.corpus_file import LONE_SURROGATE
from atdp_cli.files.documents import RepeatedKeyError, parse_json, unique_members

Value = tuple[object, int, int]
"""A value, and where it stands in its line."""

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A number without an exponent."""

_WHITESPACE = re.compile(r"[ \t\n\r]*")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],:"]+')

_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.DOTALL)

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
        position = after_space(line, end)
    return members, _after(line, position, "}")


def after_space(line: str, position: int) -> int:
    """The place of the next character that is not white space."""
    white = _WHITESPACE.match(line, position)
    return white.end() if white else position


def _after(line: str, position: int, character: str) -> int:
    """The place after the next character, which must be this one, and the white space behind it."""
    position = after_space(line, position)
    if not line.startswith(character, position):
        raise ValueError
    return after_space(line, position + 1)


class Leaf(NamedTuple):
    """A string or a number of a JSON text.

    Attributes:
        path: The keys and positions that lead to it.
        text: What the string says, or the number as it is written.
        start, end: Where it stands, quotes included.
    """

    path: tuple[str | int, ...]
    text: str
    start: int
    end: int
    number: bool = False


def leaves(line: str, start: int, end: int) -> Iterator[Leaf]:
    """The strings and numbers of a valid JSON value in order; "" without a place for an empty list."""
    path: list[str | int] = []
    is_key, before = False, ""
    for token in _TOKEN.finditer(line, start, end):
        written = token[0]
        if written in ("{", "["):
            path.append("" if written == "{" else 0)
            is_key = written == "{"
        elif written in ("}", "]"):
            path.pop()
            is_key = False
            if before == "[":
                yield Leaf(tuple(path), "", token.start(), token.start())
        elif written == ",":
            last = path[-1]
            is_key = isinstance(last, str)
            path[-1] = last if isinstance(last, str) else last + 1
        elif is_key:
            path[-1], is_key = json.loads(written), False
        elif (string := written.startswith('"')) or NUMBER.fullmatch(written):
            yield Leaf(tuple(path), json.loads(written) if string else written, *token.span(), number=not string)
        before = written


def quoted(text: str) -> str:
    """A text as a JSON string."""
    # A lone surrogate has no UTF-8; JSON can only write it as an escape.
    return LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def unescaped(written: str) -> tuple[str, list[int]]:
    """What the inside of a JSON string says, where each of its characters is written, and where the last one ends.

    Raises:
        ValueError: It is not the inside of a JSON string.
    """
    places = [match.start() for match in _CHARACTER.finditer(written)]
    text = json.loads(f'"{written}"', strict=False)
    if len(text) != len(places):
        raise ValueError
    return text, [*places, len(written)]


def from_json(value: object) -> Any:
    """What a string says that is a JSON object or list with each key once; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return parse_json(value)
    return value
