"""Regular expressions that users write: Python's, with a bound on the time that a search takes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from atdp_cli.errors import InputError

SECONDS, CHARACTERS_A_SECOND = 1.0, 100_000
"""Processor time that one may take for any text, and the pace for a long one. Most are ten times as fast."""


class Match(Protocol):
    """Where something was found."""

    def span(self) -> tuple[int, int]:
        """The places of its first character and after its last."""


class Pattern(Protocol):
    """What can be looked for."""

    @property
    def pattern(self) -> str:
        """As a regular expression."""

    def finditer(self, text: str, /) -> Iterator[Match]:
        """Where it is in a text."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A user's regular expression, which Python's `re` has compiled already: what that takes is what it says.

    Attributes:
        where: What a message calls it, without its text.
    """

    pattern: str
    where: str

    def finditer(self, text: str, /) -> Iterator[Match]:
        """As `re.Pattern.finditer`.

        Raises:
            InputError: It takes longer than `SECONDS` and the text's length allow.
        """
        import regex

        seconds = SECONDS + len(text) / CHARACTERS_A_SECOND
        found: Any = regex.compile(self.pattern).finditer(text, timeout=seconds)
        try:
            yield from found
        except TimeoutError:
            raise InputError(
                f"{self.where} takes more than {seconds:.0f} s on {len(text):,} characters.",
                "Write it without a repeat inside a repeat, as in (a+)+.",
            ) from None


def compiled(pattern: str, where: str) -> Expression:
    """A user's regular expression.

    Raises:
        re.error, RecursionError, OverflowError: It is none.
    """
    re.compile(pattern)
    return Expression(pattern, where)
