"""Redaction: flagged spans replaced by placeholders. Nothing else changes."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from atdp_cli.corpus.edits import Edit, EditedText, apply_edits
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, merge
from atdp_cli.replacement.placeholders import Masking, placeholders

BY_LABEL = Masking()
"""`[PERSON]`."""


def edits(text: str, spans: Iterable[Span], masking: Masking = BY_LABEL) -> tuple[Edit, ...]:
    """One edit for each merged span of a record's text: sorted and disjoint."""
    merged = merge(spans)
    named = zip(merged, placeholders(text, merged, masking), strict=True)
    return tuple(Edit(span.start, span.end, placeholder) for span, placeholder in named)


def edits_by_line(text: str, changes: Sequence[Edit]) -> Iterator[Edit]:
    """The same edits, none of which holds a line feed: the lines of a record may lie apart in its file.

    Args:
        changes: Each with as many line feeds in its text as in the place that it takes, as decoys have.
    """
    for change in changes:
        start = change.start
        lines = zip(text[change.start : change.end].split("\n"), change.text.split("\n"), strict=True)
        for line, replaced in lines:
            if line:
                yield Edit(start, start + len(line), replaced)
            start += len(line) + 1


def unedited(text: str, spans: Iterable[Span]) -> EditedText:
    """A text as it is, with the places of its spans."""
    return EditedText(text, tuple((span.start, span.end) for span in merge(spans)))


def turns_after(record: Record, spans: Iterable[Span], edited: EditedText) -> Record:
    """A record of conversations with an edited text, their messages where they ended up.

    Args:
        spans: Those that gave way, each within one message.
        edited: The text with one place for each of them, merged.
    """
    ends = [span.end for span in merge(spans)]
    shifts = [0, *(end - before for (_, end), before in zip(edited.places, ends, strict=True))]

    def moved(place: int) -> int:
        return place + shifts[bisect.bisect_right(ends, place)]

    turns = tuple(replace(turn, start=moved(turn.start), end=moved(turn.end)) for turn in record.turns)
    return replace(record, text=edited.text, turns=turns)


def redact_text(text: str, spans: Iterable[Span], masking: Masking = BY_LABEL) -> EditedText:
    """Replace every span by a placeholder; overlapping spans are merged first.

    Args:
        text: A record's text.
        spans: Spans with 0 ≤ start < end ≤ len(text), in any order.
        masking: How placeholders look.
    """
    return apply_edits(text, edits(text, spans, masking))
