"""Users' regular expressions: Python's syntax, with a bound on the time of a search."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from atdp_cli.errors import InputError

SECONDS, CHARACTERS_A_SECOND = 1.0, 100_000
"""Processor time that an expression may take for any text, and the pace for a long one. Most are ten times as fast."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A user's regular expression, which Python's `re` accepts.

    Attributes:
        where: What a message calls it, without its text.
    """

    pattern: str
    where: str

    def finditer(self, text: str) -> "Iterator[re.Match[str]]":
        """As `re.Pattern.finditer`.

        Raises:
            InputError: It takes longer than `SECONDS` and the text's length allow.
        """
        import regex

        seconds = SECONDS + len(text) / CHARACTERS_A_SECOND
        try:
            yield from regex.compile(self.pattern).finditer(text, timeout=seconds)
        except TimeoutError:
            raise InputError(
                f"{self.where} takes more than {seconds:.0f} s on {len(text):,} characters.",
                "Write it without a repeat inside a repeat, as in (a+)+.",
            ) from None


Pattern = re.Pattern[str] | Expression
"""An expression that can be searched for in a text."""


def compiled(pattern: str, where: str) -> Expression:
    """A user's regular expression.

    Raises:
        re.error, RecursionError, OverflowError: It is none.
    """
    re.compile(pattern)
    return Expression(pattern, where)
