"""Spans and sentences of a conversation: none reaches from one message into another."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.spans import Range, Span, by_place


def spans_within_turns(record: Record, spans: Iterable[Span]) -> tuple[Span, ...]:
    """The sorted spans of a record; of a conversation those that reach over several messages are cut at their ends."""
    if not record.turns:
        return tuple(spans)
    return tuple(sorted({piece for span in spans for piece in _pieces(record, span)}, key=by_place))


def _pieces(record: Record, span: Span) -> Iterator[Span]:
    for start, end in _cut(record, span.start, span.end):
        text = record.text[start:end]
        if (start, end) == (span.start, span.end):
            yield span
        elif stripped := text.strip():
            begin = start + len(text) - len(text.lstrip())
            yield replace(span, start=begin, end=begin + len(stripped))


def _cut(record: Record, start: int, end: int) -> Iterator[Range]:
    """The parts of a range that lie in messages."""
    first = bisect.bisect_right(record.turns, start, key=lambda turn: turn.end)
    for turn in record.turns[first:]:
        if turn.start >= end:
            return
        if (begin := max(start, turn.start)) < (stop := min(end, turn.end)):
            yield begin, stop


def sentences_within_turns(record: Record, sentences: Sequence[Range]) -> tuple[Range, ...]:
    """The sentences of a record, cut where messages begin: disjoint, in order, and together still the whole text."""
    if not record.turns:
        return tuple(sentences)
    begins = [start for start, _ in sentences]
    cuts = sorted({*begins, *(turn.start for turn in record.turns if 0 < turn.start < len(record.text))})
    return tuple(zip(cuts, [*cuts[1:], len(record.text)], strict=True)) if sentences else ()
