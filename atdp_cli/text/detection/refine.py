"""What spaCy and the recognisers found, put right: structure goes, identifiers come first, public words go."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from atdp_cli.text.detection.function_words import function_words
from atdp_cli.text.detection.public_words import is_public
from atdp_cli.text.detection.spans import CATCH_ALL, Range, Span, Tier
from atdp_cli.text.detection.structure import joined, keyword_ends, structure

_GUESSED = frozenset({"ner", "pos", "dep"})
_SAME_KIND = {"PERSON": ("PERSON", "PER"), "DATE": ("DATE",), "ADDRESS": ("LOC", "GPE", "FAC")}
_NOT_CUT_BY_NUMBERS = frozenset({"DATE", "PERSON", "PER"})
_EDGE = " \t\r\n\f\v.,;:!?#=/|<>()[]{}\"'“”‘’*_–—-"


def refined(text: str, spans: Sequence[Span], speaker_labels: Sequence[str] = ()) -> list[Span]:
    """The spans of a text, sorted, by rules that read nothing but the text and what ships with the package.

    Structure (`structure`, `keyword_ends`) is not flagged at any tier. Where a recogniser's identifier lies, an entity
    ends. A name that is common words alone (`is_public`) is none.

    Args:
        text: A record's text.
        spans: Of spaCy and the recognisers; spans of other sources stay as they are.
        speaker_labels: See `structure`.
    """
    holes = structure(text, speaker_labels)
    identifiers = [span for span in spans if span.source == "pattern"]
    kept = (piece for span in spans for piece in _without_structure(text, span, holes))
    found = (piece for span in kept for piece in _beside(text, span, identifiers))
    return sorted(
        {span for span in found if not (_is_name(span) and is_public(text, span.start, span.end, span.label))}
    )


def _is_name(span: Span) -> bool:
    """Whether spaCy took it for a name: an entity, or capitalised proper nouns without a label."""
    return span.source == "ner" or (span.source == "pos" and span.tier is Tier.LOW_ENTITY)


def _without_structure(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    if span.source == "pattern":
        if not any(start <= span.start and span.end <= end for start, end in holes):
            yield span
        return
    if span.source not in _GUESSED:
        yield span
        return
    for piece in _cut(text, span, holes):
        start, end = keyword_ends(text, piece.start, piece.end)
        if start < end:
            yield piece if (start, end) == (piece.start, piece.end) else replace(piece, start=start, end=end)


def _beside(text: str, span: Span, identifiers: Sequence[Span]) -> Iterator[Span]:
    """What of an entity lies outside the recognisers' spans."""
    cutting = [one for one in identifiers if one.start < span.end and span.start < one.end and _cuts(one, span)]
    if not cutting or not _is_name(span):
        yield span
        return
    for piece in _cut(text, span, joined({(one.start, one.end) for one in cutting})):
        if any(word.casefold() not in function_words() for word in text[piece.start : piece.end].split()):
            yield piece


def _cuts(identifier: Span, entity: Span) -> bool:
    if identifier.label in CATCH_ALL:
        return entity.label not in _NOT_CUT_BY_NUMBERS
    return entity.label not in _SAME_KIND.get(identifier.label, ())


def _cut(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    """The parts of a span outside the holes that hold a letter or digit; punctuation beside a hole goes with it."""
    across = [(start, end) for start, end in holes if start < span.end and span.start < end]
    if not across:
        yield span
        return
    starts = [span.start, *(end for _, end in across)]
    ends = [*(start for start, _ in across), span.end]
    for start, end in zip(starts, ends, strict=True):
        rest = text[start:end] if start < end else ""
        if any(map(str.isalnum, rest)):
            begun = start + len(rest) - len(rest.lstrip(_EDGE))
            yield replace(span, start=begun, end=begun + len(rest.strip(_EDGE)))
