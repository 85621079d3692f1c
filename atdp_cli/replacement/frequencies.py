"""How often the words and digits of decoys occur in flagged spans.

Each record has votes: one for a word at a place for words of a public list, whether the list has it or not, a quarter
for an abbreviation and for a digit of a date or a phone number. Nothing else has a vote: no letter or digit of any
other label. All items that can have votes are known beforehand: those of the tables and of the domain of unlisted
words. So the set of items in a noisy sum reveals nothing.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from atdp_cli.corpus.spans import Span, merge
from atdp_cli.replacement.decoys import (
    DIGITS,
    FITTED_DIGITS,
    MAX_CAPITALS,
    MAX_DIGITS,
    Choices,
    Choose,
    DecoySlot,
    Draw,
    abbreviations,
    capitals_table,
    digit_table,
    lists,
    places,
)

MIN_LETTERS, MAX_LETTERS = 2, 16

_WORD = re.compile(r"[A-Z][a-z]*[A-Z]?[a-z]*")

_LENGTHS = MAX_LETTERS - MIN_LETTERS + 1


class Unlisted(NamedTuple):
    """A word of the domain, and the table of the list that it is not in."""

    table: str
    word: str


def unlisted(table: str, stands: str) -> Unlisted | None:
    """The text at a place of a table, as an item of the domain; None if it is not one.

    >>> unlisted("family", "OKONKWO"), unlisted("organisations", "AcmeBrands"), unlisted("family", "Nuñez")
    (Unlisted(table='family', word='Okonkwo'), Unlisted(table='organisations', word='AcmeBrands'), None)
    """
    for word in (stands, stands.capitalize()):
        if _WORD.fullmatch(word) and MIN_LETTERS <= len(word) <= MAX_LETTERS:
            return Unlisted(table, word)
    return None


def unlisted_share(item: Unlisted) -> float:
    """A word's share of the domain. All of them sum to 1."""
    letters = len(item.word)
    spelled = 0.5 / (letters - 1) if item.word[1:].lower() != item.word[1:] else 0.5
    return spelled / (len(lists()) * _LENGTHS * float(len(string.ascii_lowercase)) ** letters)


def draw_unlisted(draw: Draw) -> Unlisted:
    """A word with the probability that is its share."""
    table = sorted(lists())[draw(len(lists()))]
    letters = MIN_LETTERS + draw(_LENGTHS)
    word = "".join(string.ascii_lowercase[draw(len(string.ascii_lowercase))] for _ in range(letters)).capitalize()
    if draw(2):
        further = 1 + draw(letters - 1)
        word = word[:further] + word[further].upper() + word[further + 1 :]
    return Unlisted(table, word)


def spelled_at(place: DecoySlot, word: str) -> str:
    """A word of the domain in the case of a place."""
    first = place.choices[0]
    return word.lower() if first.islower() else word.upper() if first.isupper() else word


LIGHT_VOTE = 0.25
"""The weight of votes for digits and abbreviations: they have few kinds and many of each, and words need votes more."""

UNIFORM_SHARE = 0.03
"""The probability that a place is drawn uniformly from its common choices all the same."""

_RESOLUTION = 2**40


class TableShares(NamedTuple):
    """The probabilities that the places of a table are drawn by.

    Attributes:
        cumulative: For each choice of its places, then for each unlisted word, how many of the last number's outcomes
            give it or one before it.
        unlisted: The words beyond the table's own.
    """

    cumulative: Sequence[int]
    unlisted: tuple[str, ...] = ()


Frequencies = Mapping[str, TableShares]
"""The shares of each table."""

Item = int | Unlisted
"""An item of the tables, or a word that its table does not have."""


class Table(NamedTuple):
    """A table's items: `size` of them from `start` on, of which the first `common` are common."""

    start: int
    size: int
    common: int


@cache
def tables() -> Mapping[str, Table]:
    """Every table, in an order that is always the same."""
    sizes = {name: (len(words.common) + len(words.more), len(words.common)) for name, words in lists().items()}
    sizes |= {capitals_table(n): (len(abbreviations(n)),) * 2 for n in range(1, MAX_CAPITALS + 1)}
    for label in sorted(FITTED_DIGITS):
        for digits in range(1, MAX_DIGITS + 1):
            for place in range(digits):
                sizes[digit_table(label, place, digits)] = (len(DIGITS), len(DIGITS))
    starts = accumulate((size for size, _ in sizes.values()), initial=0)
    return {name: Table(start, *size) for (name, size), start in zip(sizes.items(), starts, strict=False)}


def items() -> int:
    """How many items there are in all tables together."""
    last = list(tables().values())[-1]
    return last.start + last.size


def votes(text: str, spans: Iterable[Span]) -> dict[Item, float]:
    """A record's votes, by item."""
    by_item: dict[Item, float] = {}
    for span in merge(spans):
        for place, stands in places(span.label, text[span.start : span.end]):
            if place.table and (item := _item(place.table, stands)) is not None:
                by_item[item] = by_item.get(item, 0.0) + (1.0 if place.table in lists() else LIGHT_VOTE)
    return by_item


def _item(table: str, stands: str) -> Item | None:
    if (at := _index(table).get(stands.casefold())) is not None:
        return tables()[table].start + at
    return unlisted(table, stands) if table in lists() else None


def is_listed(item: Unlisted) -> bool:
    """Whether the table has the word after all, so that it is none of the unlisted."""
    return item.word.casefold() in _index(item.table)


def frequencies(counts: Mapping[str, Sequence[float]], further: Mapping[Unlisted, float] | None = None) -> Frequencies:
    """The shares that places are drawn by; a table whose counts are all 0 has none.

    Args:
        counts: Estimates ≥ 0, one a choice for each table.
        further: Those of unlisted words.
    """
    counted = {} if further is None else further
    fitted = {}
    for name, of_table in counts.items():
        # In an order that the corpus has no part in: only the counts are released.
        words = sorted(item for item in counted if item.table == name)
        every = (*of_table, *(counted[item] for item in words))
        if sum(every) > 0:
            fitted[name] = TableShares(_cumulative(name, every), tuple(item.word for item in words))
    return fitted


def by_frequency(draw: Draw, shares: Frequencies) -> Choose:
    """Draw places by their table's frequencies, and those without one uniformly from their common choices.

    A place that may hold only some choices of its table has their frequencies among themselves, and no unlisted words.
    """
    within: dict[DecoySlot, Sequence[int]] = {}
    nothing = TableShares((0,))

    def choose(place: DecoySlot) -> str:
        fitted = shares.get(place.table, nothing)
        cumulative = fitted.cumulative
        if place.within and cumulative[-1]:
            if place not in within:
                within[place] = _restricted(cumulative, place.within)
            cumulative = within[place]
        if not cumulative[-1]:
            return place.choices[draw(place.common)]
        at, listed = bisect_right(cumulative, draw(cumulative[-1])), len(place.choices)
        return place.choices[at] if at < listed else spelled_at(place, fitted.unlisted[at - listed])

    return choose


def unlisted_words(shares: Frequencies) -> tuple[str, ...]:
    """The words that no list has and that are drawn all the same, in alphabetical order."""
    return tuple(sorted({word for fitted in shares.values() for word in fitted.unlisted}))


def _cumulative(name: str, counts: Sequence[float]) -> tuple[int, ...]:
    common, total = tables()[name].common, sum(counts)
    shares = (
        (1 - UNIFORM_SHARE) * count / total + (UNIFORM_SHARE / common if place < common else 0.0)
        for place, count in enumerate(counts)
    )
    return tuple(accumulate(round(share * _RESOLUTION) for share in shares))


def _restricted(cumulative: Sequence[int], kept: Sequence[int]) -> tuple[int, ...]:
    """The frequencies of some choices among themselves, which may all be 0."""
    return tuple(accumulate(cumulative[at] - (cumulative[at - 1] if at else 0) for at in kept))


@cache
def _index(table: str) -> Mapping[str, int]:
    """The position of each choice in its table."""
    return {choice.casefold(): at for at, choice in enumerate(choices_of(table))}


def choices_of(table: str) -> Choices:
    """The choices that the items of a table are."""
    if (words := lists().get(table)) is not None:
        return (*words.common, *words.more)
    return {capitals_table(n): abbreviations(n) for n in range(1, MAX_CAPITALS + 1)}.get(table, DIGITS)
