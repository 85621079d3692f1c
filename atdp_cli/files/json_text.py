"""A JSON parser that refuses duplicate keys: one reader takes the first value and another the last."""

import json
from typing import Any


class RepeatedKeyError(ValueError):
    """An object has a key more than once, however it is spelled."""


def unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, for `object_pairs_hook`.

    Raises:
        RepeatedKeyError: A key is there more than once.
    """
    parsed = dict(members)
    if len(parsed) != len(members):
        raise RepeatedKeyError
    return parsed


def parse_json(text: str) -> Any:
    """The value of a JSON document.

    Raises:
        RepeatedKeyError: An object has a key more than once.
        ValueError, RecursionError: It is no JSON, or nested too deep.
    """
    return json.loads(text, object_pairs_hook=unique_members)
