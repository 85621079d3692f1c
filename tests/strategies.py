"""Texts and spans for property tests."""

from collections.abc import Iterable

from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.files.private import KEY_BYTES
from atdp_cli.replacement.placeholders import Masking, Style

LABELS = ("PERSON", "NUMBER", "EMAIL", "SUBJ")
SOURCES = ("ner", "pattern", "pos", "dep", "deny", "file")

maskings = st.builds(Masking, st.sampled_from(Style), st.sampled_from((bytes(KEY_BYTES), b"k" * 40)))


@st.composite
def spans_within(draw: st.DrawFn, length: int, most: int = 8) -> list[Span]:
    """Up to `most` spans of a text of `length` characters, in any order, overlapping as they like."""
    if length == 0:
        return []
    actual = []
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, length - 1))
        end = draw(st.integers(start + 1, length))
        label, source, tier = draw(st.tuples(*map(st.sampled_from, (LABELS, SOURCES, list(Tier)))))
        actual.append(Span(start, end, str(label), str(source), Tier(tier)))
    return actual


@st.composite
def flagged_texts(
    draw: st.DrawFn,
    characters: st.SearchStrategy[str] = st.characters(),  # noqa: B008 - strategies don't change
) -> tuple[str, list[Span]]:
    """A text of any characters, lone surrogates too, or of these, with spans."""
    text = draw(st.text(characters, max_size=30))
    return text, draw(spans_within(len(text)))


def sensitive_characters(spans: Iterable[Span], length: int) -> bytearray:
    """One byte a character of a text of `length` code points: 1 where a span covers it, else 0."""
    mask = bytearray(length)
    for span in spans:
        mask[span.start : span.end] = b"\x01" * (min(span.end, length) - span.start)
    return mask
