"""Sensitive spans of a record and the four nested tiers that flag them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from atdp_cli.memory_result import MEMORISED


class Tier(StrEnum):
    """How much counts as sensitive. Each tier contains the one before it."""

    LOW_ENTITY = "low-entity"
    HIGH_ENTITY = "high-entity"
    LOW_CONTEXTUAL = "low-contextual"
    HIGH_CONTEXTUAL = "high-contextual"


DEFAULT_TIER = Tier.LOW_ENTITY
"""Of all that reads a corpus, but for the paper's recipe."""

PAPER_TIER = Tier.HIGH_CONTEXTUAL
"""Of the recipe atdp."""

Range = tuple[int, int]
"""Characters from start to end (code points, end exclusive) of a record's text."""

_RANK = {tier: rank for rank, tier in enumerate(Tier)}
CATCH_ALL = frozenset({"NUMBER", "CODE"})
"""Labels of what looks like a number or a code and may be anything."""

_LOOSE = frozenset({"PHONE", "GPE"})

_SOURCES = ("deny", "pattern", "ner", "pos", "dep", "crosscheck")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end` (code points, end exclusive) of a record's text.

    Attributes:
        label: What was found: PERSON, EMAIL, PRON, SUBJ, OBJ, VERB, …
        source: Who found it: ner, pos, dep, pattern, deny, crosscheck; for spans from a file, what the file says.
        tier: The first tier that flags it; every later one does too.
    """

    start: int
    end: int
    label: str
    source: str
    tier: Tier


by_place = attrgetter("start", "end", "label", "source", "tier")
"""The order of spans, as a key: faster than comparing them one by one."""


def at_tier(spans: Iterable[Span], tier: Tier) -> tuple[Span, ...]:
    """The spans that `tier` flags: its own and those of the tiers before it."""
    return tuple(span for span in spans if _RANK[span.tier] <= _RANK[tier])


def merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorted, disjoint spans that cover the same characters.

    Spans that share a character become one; spans that only touch stay apart. The merged span carries the
    label and source of its most telling part: what a model remembers, of the earliest tier, the longest, then by source
    (deny, pattern, ner, pos, dep, crosscheck), then anything before PHONE, whose shapes are many, and GPE, which may be
    somebody's name as well, and these before the catch-alls NUMBER and CODE, then the first.
    """
    merged: list[Span] = []
    group: list[Span] = []
    end = -1
    for span in sorted(spans, key=by_place):
        if group and span.start >= end:
            merged.append(_joined(group, end))
            group = []
        end = max(end, span.end) if group else span.end
        group.append(span)
    if group:
        merged.append(_joined(group, end))
    return tuple(merged)


def _joined(group: list[Span], end: int) -> Span:
    telling = min(group, key=_telling)
    return Span(group[0].start, end, telling.label, telling.source, telling.tier)


def _telling(span: Span) -> tuple[bool, int, int, int, int, Span]:
    source = _SOURCES.index(span.source) if span.source in _SOURCES else len(_SOURCES)
    looseness = 2 * (span.label in CATCH_ALL) + (span.label in _LOOSE)
    return span.label != MEMORISED, _RANK[span.tier], span.start - span.end, source, looseness, span
