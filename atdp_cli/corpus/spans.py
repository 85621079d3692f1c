"""Sensitive spans of a record, the four nested tiers that flag them, and spans cut where rows and messages meet."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from atdp_cli.corpus.record import Record

MEMORISED = "MEMORISED"
"""The label of a place that no detector flags."""


class Tier(StrEnum):
    """The tiers of what counts as sensitive. Each tier contains the one before it."""

    LOW_ENTITY = "low-entity"
    HIGH_ENTITY = "high-entity"
    LOW_CONTEXTUAL = "low-contextual"
    HIGH_CONTEXTUAL = "high-contextual"


DEFAULT_TIER = Tier.LOW_ENTITY
"""The tier of everything that reads a corpus, but for the paper's recipe."""

PAPER_TIER = Tier.HIGH_CONTEXTUAL
"""The default tier of the recipe atdp."""

Range = tuple[int, int]
"""Characters from start to end (code points, end exclusive) of a record's text."""

_RANK = {tier: rank for rank, tier in enumerate(Tier)}

CATCH_ALL = frozenset({"NUMBER", "CODE"})
"""Labels of numbers and codes that may stand for anything."""

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
    """Keep the spans that `tier` flags: its own and those of the tiers before it."""
    return tuple(span for span in spans if _RANK[span.tier] <= _RANK[tier])


def outside(span: Span, holes: Sequence[Range]) -> list[Range]:
    """The parts of a span before, between and after holes; the span's own range, and only that, where none overlaps it.

    Args:
        holes: Sorted, disjoint, none empty. One that sticks out of the span leaves a part that ends before it starts.
    """
    first = bisect.bisect_right(holes, span.start, key=lambda hole: hole[1])
    last = bisect.bisect_left(holes, span.end, key=lambda hole: hole[0])
    starts = [span.start, *(end for _, end in holes[first:last])]
    ends = [*(start for start, _ in holes[first:last]), span.end]
    return list(zip(starts, ends, strict=True))


def merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merge spans into sorted, disjoint ones that cover the same characters.

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


def spans_within_borders(record: Record, spans: Iterable[Span]) -> tuple[Span, ...]:
    """The sorted spans of a record; those that reach over several rows or messages are cut there."""
    if not record.borders:
        return tuple(spans)
    holes = [(border, border + 1) for border in record.borders]
    return tuple(sorted({piece for span in spans for piece in _pieces(record.text, span, holes)}, key=by_place))


def _pieces(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    for start, end in outside(span, holes):
        piece = text[start:end]
        if (start, end) == (span.start, span.end):
            yield span
        elif stripped := piece.strip():
            begin = start + len(piece) - len(piece.lstrip())
            yield replace(span, start=begin, end=begin + len(stripped))


def sentences_within_borders(record: Record, sentences: Sequence[Range]) -> tuple[Range, ...]:
    """The sentences of a record, cut where rows or messages begin: disjoint, in order, and still the whole text."""
    if not record.borders:
        return tuple(sentences)
    inner = (border + 1 for border in record.borders if border + 1 < len(record.text))
    cuts = sorted({*inner, *(start for start, _ in sentences)})
    return tuple(zip(cuts, [*cuts[1:], len(record.text)], strict=True)) if sentences else ()


@dataclass(frozen=True, slots=True)
class FlaggedRecord:
    """A record with its sensitive spans, and for an encoder-decoder model what its encoder reads, likewise."""

    record: Record
    spans: tuple[Span, ...]
    source: "FlaggedRecord | None" = None
