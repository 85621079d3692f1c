"""The laws of redaction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.text.redaction import Edit, Redacted, Style, apply_edits, edits, redact
from atdp_cli.text.spans import Span, Tier, merge
from tests.text.strategies import flagged_texts


def test_an_example_in_both_styles() -> None:
    spans = [Span(0, 4, "PERSON", "ner", Tier.LOW_ENTITY), Span(14, 20, "GPE", "ner", Tier.LOW_ENTITY)]
    assert redact("Emma lives in Berlin.", spans) == Redacted("[PERSON] lives in [GPE].", ((0, 8), (18, 23)))
    assert redact("Emma lives in Berlin.", spans, Style.ANGLE).text == "<PERSON> lives in <GPE>."


@given(flagged_texts(), st.sampled_from(Style))
def test_nothing_but_flagged_characters_changes(case: tuple[str, list[Span]], style: Style) -> None:
    """Put the merged spans' own characters back for the placeholders: that must be the original text."""
    text, spans = case
    redacted = redact(text, spans, style)
    merged = merge(spans)
    assert len(redacted.placeholders) == len(merged)
    restored, kept_to = "", 0
    for (start, end), span in zip(redacted.placeholders, merged, strict=True):
        restored += redacted.text[kept_to:start] + text[span.start : span.end]
        kept_to = end
    assert restored + redacted.text[kept_to:] == text


@given(flagged_texts(), st.sampled_from(Style))
def test_placeholders_say_only_the_label(case: tuple[str, list[Span]], style: Style) -> None:
    text, spans = case
    redacted = redact(text, spans, style)
    marks = "[]" if style is Style.LABEL else "<>"
    labels = {marks[0] + span.label + marks[1] for span in spans}
    assert all(redacted.text[start:end] in labels for start, end in redacted.placeholders)


@given(flagged_texts(), flagged_texts())
def test_what_was_flagged_does_not_influence_the_result(
    case: tuple[str, list[Span]], other: tuple[str, list[Span]]
) -> None:
    """No flagged character survives: with all of them replaced by others the redacted text is the same."""
    text, spans = case
    replaced = list(text)
    for span in spans:
        for at in range(span.start, span.end):
            replaced[at] = other[0][at] if at < len(other[0]) else "#"
    assert redact("".join(replaced), spans) == redact(text, spans)


@given(flagged_texts(), st.sampled_from(Style))
def test_redacting_placeholders_again_changes_nothing(case: tuple[str, list[Span]], style: Style) -> None:
    text, spans = case
    once = redact(text, spans, style)
    labels = [span.label for span in merge(spans)]
    again = [
        Span(start, end, label, "ner", Tier.LOW_ENTITY)
        for (start, end), label in zip(once.placeholders, labels, strict=True)
    ]
    assert redact(once.text, again, style) == once


@given(st.text())
def test_without_spans_the_text_stays(text: str) -> None:
    assert redact(text, []) == Redacted(text, ())


@given(flagged_texts())
def test_edits_are_what_redact_applies(case: tuple[str, list[Span]]) -> None:
    text, spans = case
    assert apply_edits(text, edits(spans)) == redact(text, spans)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [([], "abc"), ([Edit(0, 3, "")], ""), ([Edit(1, 1, "X")], "aXbc"), ([Edit(0, 1, "X"), Edit(1, 3, "Y")], "XY")],
)
def test_edits_by_hand(changes: list[Edit], expected: str) -> None:
    assert apply_edits("abc", changes).text == expected
