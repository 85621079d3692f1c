"""JSON that says each thing once: of a key that stands twice, one reader takes the first value and another the last."""

import json
import re
from typing import Any

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,\n]')


class RepeatedKeyError(ValueError):
    """An object has a key more than once.

    Attributes:
        line: Where it stands the second time, from 1.
    """

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} has a key more than once")
        self.line = line


def unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, for `object_pairs_hook`.

    Raises:
        ValueError: A key is there more than once.
    """
    parsed = dict(members)
    if len(parsed) != len(members):
        raise RepeatedKeyError(1)
    return parsed


def parse_json(text: str) -> Any:
    """The value of a JSON document.

    Raises:
        RepeatedKeyError: An object has a key more than once, however it is spelled.
        ValueError, RecursionError: It is no JSON, or nested too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=unique_members)
    except RepeatedKeyError:
        raise RepeatedKeyError(_line_of_repeated(text)) from None


def _line_of_repeated(text: str) -> int:
    """The line of the first key that is there again; in the text before it all is JSON."""
    line, before = 1, ""
    keys: list[set[str] | None] = []
    for piece_match in _PIECE.finditer(text):
        piece = piece_match[0]
        match piece:
            case "\n":
                line += 1
                continue
            case "{" | "[":
                keys.append(set() if piece == "{" else None)
            case "}" | "]":
                keys.pop()
            case ":" | ",":
                pass
            case _ if before in ("{", ",") and keys and (known := keys[-1]) is not None:
                if (key := json.loads(piece)) in known:
                    return line
                known.add(key)
        before = piece
    return line
