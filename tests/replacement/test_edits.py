"""The laws of redaction, for every style of placeholder."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit, EditedText, apply_edits
from atdp_cli.corpus.spans import Span, Tier, merge
from atdp_cli.detection.detect import PLACEHOLDERS
from atdp_cli.replacement.edits import edits, redact_text
from atdp_cli.replacement.placeholders import Masking, Style
from tests.strategies import flagged_texts, maskings


def person(start: int, end: int) -> Span:
    return Span(start, end, "PERSON", "ner", Tier.LOW_ENTITY)


def test_an_example_in_every_style() -> None:
    text = "Emma met EMMA in Berlin."
    spans = [person(0, 4), person(9, 13), Span(17, 23, "GPE", "ner", Tier.LOW_ENTITY)]
    assert redact_text(text, spans) == EditedText("[PERSON] met [PERSON] in [GPE].", ((0, 8), (13, 21), (25, 30)))
    assert redact_text(text, spans, Masking(Style.ANGLE)).text == "<PERSON> met <PERSON> in <GPE>."
    assert redact_text(text, spans, Masking(Style.NUMBERED)).text == "[PERSON_1] met [PERSON_1] in [GPE_1]."
    # As OpenSSL and coreutils' base32 give it under 32 zero bytes for PERSON\0emma and GPE\0berlin.
    named = redact_text(text, spans, Masking(Style.PSEUDONYM, bytes(32))).text
    assert named == "[PERSON_owhru5j3] met [PERSON_owhru5j3] in [GPE_43zjxlzj]."


@given(flagged_texts(), maskings)
def test_nothing_but_flagged_characters_changes(case: tuple[str, list[Span]], masking: Masking) -> None:
    """Put the merged spans' own characters back for the placeholders: that must be the original text."""
    text, spans = case
    redacted = redact_text(text, spans, masking)
    merged = merge(spans)
    assert len(redacted.places) == len(merged)
    restored, kept_to = "", 0
    for (start, end), span in zip(redacted.places, merged, strict=True):
        restored += redacted.text[kept_to:start] + text[span.start : span.end]
        kept_to = end
    assert restored + redacted.text[kept_to:] == text


@given(flagged_texts(), maskings)
def test_every_placeholder_is_recognised_at_its_place(case: tuple[str, list[Span]], masking: Masking) -> None:
    """Whatever stands around it; and it begins with its span's label."""
    text, spans = case
    redacted = redact_text(text, spans, masking)
    assert set(redacted.places) <= {match.span() for match in PLACEHOLDERS.finditer(redacted.text)}
    for (start, end), span in zip(redacted.places, merge(spans), strict=True):
        assert redacted.text[start + 1 : end - 1].split("_")[0] == span.label


def reported(text: str, spans: list[Span]) -> list[tuple[str, str]]:
    """What pseudonyms may depend on: label and text without case and amounts of white space."""
    return [(span.label, " ".join(text[span.start : span.end].casefold().split())) for span in merge(spans)]


def pattern(values: list[tuple[str, str]]) -> list[int]:
    """Which of the values are equal, and nothing else."""
    return [values.index(value) for value in values]


def replaced(text: str, spans: list[Span], surfaces: list[str]) -> tuple[str, list[Span]]:
    """The text with other characters at its spans, and where those are now."""
    merged = merge(spans)
    result = apply_edits(text, [Edit(s.start, s.end, new) for s, new in zip(merged, surfaces, strict=True)])
    moved = [
        Span(start, end, span.label, span.source, span.tier)
        for (start, end), span in zip(result.places, merged, strict=True)
    ]
    return result.text, moved


@given(flagged_texts(), st.sampled_from((Style.LABEL, Style.ANGLE)), st.data())
def test_what_was_flagged_does_not_influence_the_result(
    case: tuple[str, list[Span]], style: Style, data: st.DataObject
) -> None:
    """No flagged character survives: with any others in their place the redacted text is the same."""
    text, spans = case
    others = [data.draw(st.text(st.characters(), min_size=1, max_size=9)) for _ in merge(spans)]
    assert redact_text(*replaced(text, spans, others), Masking(style)) == redact_text(text, spans, Masking(style))


@given(flagged_texts(st.sampled_from("aAb \t")), maskings, st.data())
def test_linking_styles_tell_which_flagged_texts_are_equal_and_no_more(
    case: tuple[str, list[Span]], masking: Masking, data: st.DataObject
) -> None:
    text, spans = case
    redacted = redact_text(text, spans, masking)
    shown = [redacted.text[start:end] for start, end in redacted.places]
    values = reported(text, spans)
    if masking.style in (Style.NUMBERED, Style.PSEUDONYM):
        assert pattern([(placeholder, "") for placeholder in shown]) == pattern(values)
    # Other texts, equal where these were equal: numbers stay, and pseudonyms are as equal as before.
    fresh = data.draw(st.permutations(["q", "Qu", "ß", "é", "7", "#", "\ud800", "зима"]))
    renamed = [fresh[at % len(fresh)] + str(at) for at in pattern(values)]
    again = redact_text(*replaced(text, spans, renamed), masking)
    if masking.style is Style.PSEUDONYM:
        assert pattern([(again.text[a:b], "") for a, b in again.places]) == pattern(values)
    else:
        assert again == redacted


@given(flagged_texts())
def test_numbers_count_from_one_for_each_label(case: tuple[str, list[Span]]) -> None:
    redacted = redact_text(*case, Masking(Style.NUMBERED))
    shown = dict.fromkeys(redacted.text[start + 1 : end - 1] for start, end in redacted.places)
    for label, group in itertools.groupby(
        sorted(numbered.rsplit("_", 1) for numbered in shown), key=lambda pair: pair[0]
    ):
        numbers = [int(number) for _, number in group]
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), label


def test_numbers_of_an_earlier_redaction_are_not_given_again() -> None:
    text = "[PERSON_2] met Bob, [GPE_7] and [PERSON_1]."
    assert (
        redact_text(text, [person(15, 18)], Masking(Style.NUMBERED)).text
        == "[PERSON_2] met [PERSON_3], [GPE_7] and [PERSON_1]."
    )


@given(flagged_texts(), st.sampled_from([style for style in Style if style is not Style.PSEUDONYM]))
def test_redacting_placeholders_again_changes_nothing(case: tuple[str, list[Span]], style: Style) -> None:
    text, spans = case
    once = redact_text(text, spans, Masking(style))
    again = [
        Span(start, end, span.label, "ner", Tier.LOW_ENTITY)
        for (start, end), span in zip(once.places, merge(spans), strict=True)
    ]
    assert redact_text(once.text, again, Masking(style)) == once


@given(st.text(), maskings)
def test_without_spans_the_text_stays(text: str, masking: Masking) -> None:
    assert redact_text(text, [], masking) == EditedText(text, ())


@given(flagged_texts(), maskings)
def test_edits_are_what_redact_applies(case: tuple[str, list[Span]], masking: Masking) -> None:
    text, spans = case
    assert apply_edits(text, edits(text, spans, masking)) == redact_text(text, spans, masking)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [([], "abc"), ([Edit(0, 3, "")], ""), ([Edit(1, 1, "X")], "aXbc"), ([Edit(0, 1, "X"), Edit(1, 3, "Y")], "XY")],
)
def test_edits_by_hand(changes: list[Edit], expected: str) -> None:
    assert apply_edits("abc", changes).text == expected
