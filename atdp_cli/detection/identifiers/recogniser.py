"""What a recogniser is, and how to make one from a pattern or a function."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from atdp_cli.corpus.spans import Range
from atdp_cli.files.word_lists import read_lists

IdentifierMatch = tuple[int, int, str]
"""(start, end, label): code points of the text, end exclusive."""

Recogniser = Callable[[str], Iterable[IdentifierMatch]]
"""Takes a text and gives what it found, in any order. Time must be linear in the text's length."""

REGISTERED: list[tuple[str, Recogniser]] = []
"""Every recogniser that was made so far, with the label that it gives."""


def recogniser(label: str) -> Callable[[Callable[[str], Iterator[Range]]], Recogniser]:
    """A decorator: a function that gives the places of one kind of identifier becomes their recogniser."""

    def decorate(places: Callable[[str], Iterator[Range]]) -> Recogniser:
        @functools.wraps(places)
        def recognise(text: str) -> Iterator[IdentifierMatch]:
            return ((start, end, label) for start, end in places(text))

        REGISTERED.append((label, recognise))
        return recognise

    return decorate


def pattern(label: str, expression: str, check: Callable[[re.Match[str]], bool] | None = None) -> Recogniser:
    """A recogniser for a verbose regular expression.

    To stay linear, an expression repeats at most a bounded number of times after each place where a
    match may begin, or only begins where its repeated characters do not stand before it.

    Args:
        label: What a match is called.
        expression: In verbose syntax. A group named `value` is the span; without one the whole match is.
        check: Refuses matches that only look right.
    """
    compiled = re.compile(expression, re.VERBOSE)
    group = "value" if "value" in compiled.groupindex else 0

    @recogniser(label)
    def recognise(text: str) -> Iterator[Range]:
        return (match.span(group) for match in compiled.finditer(text) if check is None or check(match))

    return recognise


def either(section: str) -> str:
    """A group of an expression for the terms of a section of words.txt."""
    return f"(?:{'|'.join(_terms(section))})".replace(" ", r"\s")


@functools.cache
def listed(section: str) -> frozenset[str]:
    """The terms of a section of words.txt."""
    return frozenset(_terms(section))


def _terms(section: str) -> tuple[str, ...]:
    return read_lists(Path(__file__).with_name("words.txt"), ",")[section]
