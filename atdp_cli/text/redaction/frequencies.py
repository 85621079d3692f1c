"""How often the public words and digits that decoys are made of stand in flagged spans.

Each record has votes: one for a word of a public list at its place, a quarter for an abbreviation and for a digit of a
date or a phone number. What is not public has no vote: no word beyond the lists, no letter or digit of any other label.
All items that can have votes are known beforehand, so a noisy sum over all of them tells nothing by which items it has.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from atdp_cli.text.detection.spans import Span, merge
from atdp_cli.text.redaction.decoys import (
    DIGITS,
    FITTED_DIGITS,
    MOST_CAPITALS,
    MOST_DIGITS,
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

LIGHT_VOTE = 0.25
"""Of digits and abbreviations there are few kinds and many of each; words need a record's votes more."""

UNIFORM_SHARE = 0.03
"""How often a place is drawn uniformly from its common choices all the same."""

_RESOLUTION = 2**40

Frequencies = Mapping[str, Sequence[int]]
"""By table: for each choice of its places, how many of the last number's outcomes give it or one before it."""


class Table(NamedTuple):
    """A table's items: `size` of them from `start` on, of which the first `common` are common."""

    start: int
    size: int
    common: int


@cache
def tables() -> Mapping[str, Table]:
    """Every table, in an order that is always the same."""
    sizes = {name: (len(words.common) + len(words.more), len(words.common)) for name, words in lists().items()}
    sizes |= {capitals_table(n): (len(abbreviations(n)),) * 2 for n in range(1, MOST_CAPITALS + 1)}
    for label in sorted(FITTED_DIGITS):
        for digits in range(1, MOST_DIGITS + 1):
            for place in range(digits):
                sizes[digit_table(label, place, digits)] = (len(DIGITS), len(DIGITS))
    starts = accumulate((size for size, _ in sizes.values()), initial=0)
    return {name: Table(start, *size) for (name, size), start in zip(sizes.items(), starts, strict=False)}


def items() -> int:
    """How many items there are in all tables together."""
    last = list(tables().values())[-1]
    return last.start + last.size


def votes(text: str, spans: Iterable[Span]) -> dict[int, float]:
    """A record's votes, by item."""
    by_item: dict[int, float] = {}
    for span in merge(spans):
        for place, stands in places(span.label, text[span.start : span.end]):
            if place.table and (at := _index(place.table).get(stands.casefold())) is not None:
                item = tables()[place.table].start + at
                by_item[item] = by_item.get(item, 0.0) + (1.0 if place.table in lists() else LIGHT_VOTE)
    return by_item


def frequencies(counts: Mapping[str, Sequence[float]]) -> Frequencies:
    """What places are drawn by, from estimated counts ≥ 0, one a choice for each table; 0 gives a table none."""
    return {name: _cumulative(name, of_table) for name, of_table in counts.items() if sum(of_table) > 0}


def by_frequency(draw: Draw, shares: Frequencies) -> Choose:
    """Places are drawn by their table's frequencies; those without one uniformly from their common choices.

    A place that may hold only some choices of its table has their frequencies among themselves.
    """

    within: dict[DecoySlot, Sequence[int]] = {}

    def choose(place: DecoySlot) -> str:
        cumulative = shares.get(place.table)
        if cumulative is not None and place.within:
            if place not in within:
                within[place] = _restricted(cumulative, place.within)
            cumulative = within[place]
        if cumulative is None or not cumulative[-1]:
            return place.choices[draw(place.common)]
        return place.choices[bisect_right(cumulative, draw(cumulative[-1]))]

    return choose


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
    """Where each of its choices stands in a table."""
    return {choice.casefold(): at for at, choice in enumerate(choices_of(table))}


def choices_of(table: str) -> Choices:
    """What the items of a table are."""
    if (words := lists().get(table)) is not None:
        return (*words.common, *words.more)
    return {capitals_table(n): abbreviations(n) for n in range(1, MOST_CAPITALS + 1)}.get(table, DIGITS)
