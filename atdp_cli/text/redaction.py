"""Redaction: flagged spans give way to placeholders; nothing else changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from atdp_cli.text.spans import Span, merge


class Style(StrEnum):
    """How a placeholder looks: `[PERSON]` or, as in the paper, `<PERSON>`."""

    LABEL = "label"
    ANGLE = "angle"


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` (end exclusive) of a record's text give way to `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """A redacted text.

    Attributes:
        text: The text with its placeholders.
        placeholders: Their (start, end) in `text`, sorted and disjoint; training gives them no weight.
    """

    text: str
    placeholders: tuple[tuple[int, int], ...]


def placeholder(label: str, style: Style) -> str:
    """What stands in a redacted text for a span with this label."""
    return f"<{label}>" if style is Style.ANGLE else f"[{label}]"


def edits(spans: Iterable[Span], style: Style = Style.LABEL) -> tuple[Edit, ...]:
    """One edit for each merged span: sorted and disjoint."""
    return tuple(Edit(span.start, span.end, placeholder(span.label, style)) for span in merge(spans))


def apply_edits(text: str, changes: Sequence[Edit]) -> Redacted:
    """`text` after sorted, disjoint edits, and where their texts ended up."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    kept_to = length = 0
    for change in changes:
        kept = text[kept_to : change.start]
        pieces += (kept, change.text)
        start = length + len(kept)
        length = start + len(change.text)
        places.append((start, length))
        kept_to = change.end
    pieces.append(text[kept_to:])
    return Redacted("".join(pieces), tuple(places))


def redact(text: str, spans: Iterable[Span], style: Style = Style.LABEL) -> Redacted:
    """Replace every span by the placeholder of its label; overlapping spans are merged first.

    Args:
        text: A record's text.
        spans: Spans with 0 ≤ start < end ≤ len(text), in any order.
        style: How placeholders look.
    """
    return apply_edits(text, edits(spans, style))
