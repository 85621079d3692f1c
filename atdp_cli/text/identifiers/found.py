"""What a recogniser is, and how to make one from a pattern."""

import re
from collections.abc import Callable, Iterable

Found = tuple[int, int, str]
"""(start, end, label): code points of the text, end exclusive."""

Recogniser = Callable[[str], Iterable[Found]]
"""Takes a text and gives what it found, in any order. Time must be linear in the text's length."""


def pattern(
    label: str,
    expression: str,
    *,
    flags: re.RegexFlag = re.NOFLAG,
    check: Callable[[re.Match[str]], bool] | None = None,
    needs: str = "",
) -> Recogniser:
    """A recogniser for a verbose regular expression.

    To stay linear, an expression repeats at most a bounded number of times after each place where a
    match may begin, or only begins where its repeated characters do not stand before it.

    Args:
        label: What a match is called.
        expression: In verbose syntax. A group named `value` is the span; without one the whole match is.
        flags: More flags of `re`.
        check: Refuses matches that only look right.
        needs: A string without which no text can match; looking for it is cheaper.
    """
    compiled = re.compile(expression, re.VERBOSE | flags)
    group = "value" if "value" in compiled.groupindex else 0

    def recognise(text: str) -> Iterable[Found]:
        if needs not in text:
            return ()
        return ((*match.span(group), label) for match in compiled.finditer(text) if check is None or check(match))

    return recognise
