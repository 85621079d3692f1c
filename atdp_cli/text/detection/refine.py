"""What spaCy and the recognisers found, put right: structure goes, identifiers come first, public words go."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace

from atdp_cli.text.detection.public_words import is_public
from atdp_cli.text.detection.spans import CATCH_ALL, Range, Span, Tier, by_place
from atdp_cli.text.detection.structure import joined, keyword_ends, structure
from atdp_cli.text.detection.word_lists import function_words

_GUESSED = frozenset({"ner", "pos", "dep"})
_SAME_KIND = {"DATE": ("DATE",), "ADDRESS": ("LOC", "GPE", "FAC")}
_NOT_CUT_BY_NUMBERS = frozenset({"DATE", "PERSON", "PER"})
_LISTED = frozenset({"PERSON", "GPE", "ORG"})
"""What lists of names and a word before it find: an entity around it stays whole."""

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
    # By label, since an identifier of the same kind does not cut an entity.
    taken = {label: _cutting(identifiers, label) for label in {span.label for span in spans if _is_name(span)}}
    refined_spans: set[Span] = set()
    for span in spans:
        if span.source not in _GUESSED:
            if span.source != "pattern" or not _within(span, holes):
                refined_spans.add(span)
        elif _is_name(span):
            pieces = (
                rest for piece in _without_structure(text, span, holes) for rest in _cut(text, piece, taken[span.label])
            )
            refined_spans.update(piece for piece in pieces if _says_something(text, piece, span))
        else:
            refined_spans.update(_without_structure(text, span, holes))
    return sorted(refined_spans, key=by_place)


def _is_name(span: Span) -> bool:
    """Whether spaCy took it for a name: an entity, or capitalised proper nouns without a label."""
    return span.source == "ner" or (span.source == "pos" and span.tier is Tier.LOW_ENTITY)


def _without_structure(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    for piece in _cut(text, span, holes):
        start, end = keyword_ends(text, piece.start, piece.end)
        if start < end:
            yield piece if (start, end) == (piece.start, piece.end) else replace(piece, start=start, end=end)


def _says_something(text: str, piece: Span, whole: Span) -> bool:
    """Whether what is left of a name is one; function words are left of "from 10.0.0.1" where the address is taken."""
    if is_public(text, piece.start, piece.end, piece.label):
        return False
    left = text[piece.start : piece.end].casefold().split()
    return (piece.start, piece.end) == (whole.start, whole.end) or not function_words().issuperset(left)


def _cutting(identifiers: Sequence[Span], label: str) -> list[Range]:
    """Where recognisers' spans lie that end an entity of this label."""
    return joined({(span.start, span.end) for span in identifiers if _cuts(span.label, label)})


def _cuts(identifier: str, entity: str) -> bool:
    if identifier in _LISTED:
        return False
    if identifier in CATCH_ALL:
        return entity not in _NOT_CUT_BY_NUMBERS
    return entity not in _SAME_KIND.get(identifier, ())


def _within(span: Span, holes: Sequence[Range]) -> bool:
    first = bisect.bisect_right(holes, span.start, key=lambda hole: hole[1])
    return first < len(holes) and holes[first][0] <= span.start and span.end <= holes[first][1]


def _cut(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    """The parts of a span outside the holes that hold a letter or digit; punctuation beside a hole goes with it."""
    first = bisect.bisect_right(holes, span.start, key=lambda hole: hole[1])
    last = bisect.bisect_left(holes, span.end, key=lambda hole: hole[0])
    if first >= last:
        yield span
        return
    starts = [span.start, *(end for _, end in holes[first:last])]
    ends = [*(start for start, _ in holes[first:last]), span.end]
    for start, end in zip(starts, ends, strict=True):
        rest = text[start:end] if start < end else ""
        if any(map(str.isalnum, rest)):
            begun = start + len(rest) - len(rest.lstrip(_EDGE))
            yield replace(span, start=begun, end=begun + len(rest.strip(_EDGE)))
