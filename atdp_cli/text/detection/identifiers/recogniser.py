"""What a recogniser is, and how to make one from a pattern or a function."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator

from atdp_cli.text.detection.identifiers.density import ANYTHING, DIGIT, Density, density
from atdp_cli.text.detection.spans import Range

IdentifierMatch = tuple[int, int, str]
"""(start, end, label): code points of the text, end exclusive."""

Recogniser = Callable[[str], Iterable[IdentifierMatch]]
"""Takes a text and gives what it found, in any order. Time must be linear in the text's length."""

REGISTERED: list[tuple[str, Recogniser]] = []
"""Every recogniser that was made so far, with the label that it gives."""

_DENSITIES: dict[Recogniser, Density] = {}
_CONTEXTS: dict[Recogniser, frozenset[str]] = {}
_WORD = re.compile("[a-z]+")


def recogniser(
    label: str, words: Iterable[str] = (), *, within: re.Pattern[str] | None = None
) -> Callable[[Callable[[str], Iterator[Range]]], Recogniser]:
    """A decorator: a function that gives the places of one kind of identifier becomes their recogniser.

    Args:
        label: What a place is called.
        words: As for `pattern`.
        within: An expression without a match of which a text has no place; None for none.
    """

    def decorate(places: Callable[[str], Iterator[Range]]) -> Recogniser:
        @functools.wraps(places)
        def recognise(text: str) -> Iterator[IdentifierMatch]:
            return ((start, end, label) for start, end in places(text))

        if within is not None:
            _DENSITIES[recognise] = density(within)
        _CONTEXTS[recognise] = frozenset(words)
        REGISTERED.append((label, recognise))
        return recognise

    return decorate


def pattern(
    label: str,
    expression: str,
    *,
    flags: re.RegexFlag = re.NOFLAG,
    check: Callable[[re.Match[str]], bool] | None = None,
    needs: str = "",
    words: Iterable[str] = (),
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
        words: Words, of a to z, one of which every text with a match has between other characters, in any case;
            `Recognisers` looks for those of all patterns at once. None if there are no such words.
    """
    compiled = re.compile(expression, re.VERBOSE | flags)
    group = "value" if "value" in compiled.groupindex else 0

    def recognise(text: str) -> Iterable[IdentifierMatch]:
        if needs not in text:
            return ()
        return ((*match.span(group), label) for match in compiled.finditer(text) if check is None or check(match))

    _DENSITIES[recognise] = density(compiled)
    _CONTEXTS[recognise] = frozenset(words)
    REGISTERED.append((label, recognise))
    return recognise


class Recognisers:
    """Recognisers as one; a text that lacks the digits or the words for one of them is not given to it."""

    def __init__(self, recognisers: Iterable[Recogniser]) -> None:
        self._by_digits: dict[int, list[tuple[int, frozenset[str], Recogniser]]] = {}
        for recognise in recognisers:
            digits, width = _DENSITIES.get(recognise, ANYTHING)
            words = _CONTEXTS.get(recognise, frozenset())
            self._by_digits.setdefault(digits, []).append((width, words, recognise))

    def __call__(self, text: str) -> Iterator[IdentifierMatch]:
        """What all of them find, in no order."""
        places = [match.start() for match in DIGIT.finditer(text)]
        present = set(_WORD.findall(text.lower()))
        for digits, recognisers in self._by_digits.items():
            if digits > len(places):
                continue
            # The narrowest stretch of the text with as many digits.
            stretch = 1 + min(map(int.__sub__, places[digits - 1 :], places)) if digits else 0
            for width, words, recognise in recognisers:
                if (stretch <= width or not digits) and (not words or not words.isdisjoint(present)):
                    yield from recognise(text)
