"""Which spans count, by label and confidence; and what is said of them without text."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.detect import LABELS, LabelFilter, confidence, parse_labels
from atdp_cli.detection.results import COUNTERS, CorpusCounts, character_shape
from atdp_cli.errors import UsageError

SOURCES = ("ner", "pos", "dep", "pattern", "deny", "crosscheck", "file")


@st.composite
def a_span(draw: st.DrawFn) -> Span:
    start = draw(st.integers(0, 20))
    label, source = draw(st.sampled_from(sorted(LABELS))), draw(st.sampled_from(SOURCES))
    return Span(start, start + draw(st.integers(1, 5)), label, source, draw(st.sampled_from(Tier)))


FILTERS = st.builds(
    LabelFilter,
    entities=st.lists(st.sampled_from(sorted(LABELS)), max_size=4).map(tuple),
    exclude=st.lists(st.sampled_from(sorted(LABELS)), max_size=4).map(tuple),
    min_confidence=st.floats(0, 1),
)


@given(st.lists(a_span(), max_size=8), FILTERS)
def test_a_filter_takes_spans_away_and_changes_none(spans: list[Span], labels: LabelFilter) -> None:
    kept = labels.apply(spans)
    assert not Counter(kept) - Counter(spans)
    assert labels.apply(kept) == kept
    for span in spans:
        sure = span.source in ("deny", "crosscheck")
        wanted = not labels.entities or span.label in labels.entities
        enough = confidence(span.label, span.source) >= labels.min_confidence
        assert (span in kept) is (span.label not in labels.exclude and (sure or (wanted and enough)))


@given(st.text(max_size=20), st.sampled_from(SOURCES))
def test_a_confidence_is_a_share(label: str, source: str) -> None:
    assert 0 < confidence(label, source) <= 1


def test_a_checked_number_is_surer_than_a_name_of_the_language_model() -> None:
    assert confidence("IBAN", "pattern") > confidence("PERSON", "ner") > confidence("DATE", "ner")
    assert confidence("PROPN", "dep") == confidence("PRON", "pos") == 1


def test_labels_are_checked() -> None:
    assert parse_labels("entities", " phone,PERSON,phone", LABELS) == ("PERSON", "PHONE")
    assert parse_labels("exclude", "OWN_LABEL", None) == ("OWN_LABEL",)
    with pytest.raises(UsageError, match=r"--entities has 'PERSN', which is no label. Did you mean PERSON"):
        parse_labels("entities", "PERSN", LABELS)
    for text in ("", ",", "PER SON", "é", "1"):
        with pytest.raises(UsageError, match="is no label"):
            parse_labels("exclude", text, None)


@given(st.text(max_size=60))
def test_a_shape_shows_no_letter_and_no_digit(text: str) -> None:
    made = character_shape(text)
    assert len(made) <= 24
    assert set(filter(str.isalpha, made)) <= {"a", "A"}
    assert set(filter(str.isdecimal, made)) <= {"0"}
    assert made.isprintable() or not text.isprintable()


@given(st.lists(st.integers(0, 3000), min_size=20, max_size=3000), st.integers(0, 2**32))
def test_a_text_that_is_frequent_is_named_and_no_other(numbers: list[int], seed: int) -> None:
    """Exact counts are the oracle; the bounded counter is too low by at most one in `COUNTERS`."""
    draw = random.Random(seed)
    texts = [str(number) if draw.random() < 0.7 else "USR" for number in numbers]
    counts = CorpusCounts()
    for text in texts:
        counts.add(text, [Span(0, len(text), "X", "ner", Tier.LOW_ENTITY)])
    assert len(counts._texts) <= COUNTERS
    summary = counts.flagged()
    assert summary.by_label == {"X": len(texts)}
    [(_, most)] = Counter(texts).most_common(1)
    frequent = summary.most_frequent
    if frequent is None:
        assert most <= 0.1 * len(texts) + len(texts) / COUNTERS
    else:
        assert most - len(texts) / COUNTERS <= frequent.count <= most
        assert frequent.count > 0.1 * len(texts)
