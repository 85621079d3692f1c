"""How many digits a text must have, and how close together, before a regular expression can match in it."""

import re
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

DIGIT = re.compile(r"\d")

_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)


class Density(NamedTuple):
    """Every match holds at least so many digits (`DIGIT`), and is at most so many characters wide.

    Whether a text has as many digits in as few characters is cheaper to see than whether a pattern matches.
    """

    digits: int
    width: int


ANYTHING = Density(0, 0)
"""Asks for no digits."""


def density(pattern: re.Pattern[str]) -> Density:
    """What the matches of a pattern have in common, as far as that is easily known."""
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    return Density(_of_all(parsed), int(parsed.getwidth()[1]))


def _of_all(parsed: Any) -> int:
    return sum(_of_one(kind, what) for kind, what in parsed)


def _of_one(kind: Any, what: Any) -> int:
    """Of one element of the parsed expression; what is not listed here, such as a look-around, asks for none."""
    if kind is code.IN:
        return int(all(_is_digit(*member) for member in what))
    if kind is code.BRANCH:
        return min(map(_of_all, what[1]))
    if kind in _REPEATS:
        least, _, repeated = what
        return int(least) * _of_all(repeated)
    if kind in (code.SUBPATTERN, code.ATOMIC_GROUP):
        return _of_all(what[3] if kind is code.SUBPATTERN else what)
    return int(_is_digit(kind, what))


def _is_digit(kind: Any, what: Any) -> bool:
    if kind is code.LITERAL:
        return chr(what).isdecimal()
    if kind is code.RANGE:
        first, last = what
        return bool(ord("0") <= first <= last <= ord("9"))
    return kind is code.CATEGORY and what is code.CATEGORY_DIGIT
