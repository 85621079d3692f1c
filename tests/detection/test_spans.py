"""Tiers, merging and masks of spans."""

import itertools

from hypothesis import given

from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from tests.strategies import sensitive_characters, spans_within

LENGTH = 25


def covered(spans: list[Span] | tuple[Span, ...]) -> set[int]:
    return {at for span in spans for at in range(span.start, span.end)}


def span(start: int, end: int, label: str, source: str = "ner", tier: Tier = Tier.LOW_ENTITY) -> Span:
    return Span(start, end, label, source, tier)


@given(spans_within(LENGTH))
def test_merged_spans_are_sorted_disjoint_and_cover_the_same(spans: list[Span]) -> None:
    merged = merge(spans)
    assert all(left.end <= right.start for left, right in itertools.pairwise(merged))
    assert covered(merged) == covered(spans)


@given(spans_within(LENGTH))
def test_each_merged_span_is_connected_by_overlaps(spans: list[Span]) -> None:
    """Spans that only touch stay apart: between neighbouring characters of a merged span runs an original."""
    for each in merge(spans):
        for at in range(each.start, each.end - 1):
            assert any(span.start <= at and at + 1 < span.end for span in spans)


@given(spans_within(LENGTH))
def test_merging_is_idempotent_and_ignores_order_and_repeats(spans: list[Span]) -> None:
    merged = merge(spans)
    assert merge(merged) == merged
    assert merge([*reversed(spans), *spans]) == merged


@given(spans_within(LENGTH))
def test_a_merged_span_takes_label_source_and_tier_from_one_of_its_parts(spans: list[Span]) -> None:
    for each in merge(spans):
        parts = [span for span in spans if span.start < each.end and span.end > each.start]
        assert (each.label, each.source, each.tier) in [(part.label, part.source, part.tier) for part in parts]
        assert all(at_tier([part], each.tier) == () or part.tier == each.tier for part in parts)


def test_the_label_is_of_the_earliest_tier_then_the_longest_part() -> None:
    verb = span(0, 20, "VERB", "pos", Tier.HIGH_CONTEXTUAL)
    assert merge([verb, span(3, 5, "PERSON")])[0].label == "PERSON"
    assert merge([span(0, 4, "PERSON"), span(0, 12, "EMAIL", "pattern")])[0].label == "EMAIL"


def test_among_equals_the_source_decides_and_number_comes_last() -> None:
    tied = [span(0, 4, "DATE"), span(0, 4, "NUMBER", "pattern"), span(0, 4, "ZIP", "pattern")]
    assert merge(tied)[0].label == "ZIP"
    assert merge([*tied, span(0, 4, "DENY", "deny")])[0].label == "DENY"
    contextual = Tier.LOW_CONTEXTUAL
    assert merge([span(0, 2, "OBJ", "dep", contextual), span(0, 2, "PRON", "pos", contextual)])[0].label == "PRON"


@given(spans_within(LENGTH))
def test_tiers_nest(spans: list[Span]) -> None:
    shares = [covered(at_tier(spans, tier)) for tier in Tier]
    assert all(earlier <= later for earlier, later in itertools.pairwise(shares))
    assert shares[-1] == covered(spans)


@given(spans_within(LENGTH))
def test_masks_mark_what_is_covered(spans: list[Span]) -> None:
    mask = sensitive_characters(spans, LENGTH)
    assert len(mask) == LENGTH
    assert {at for at, marked in enumerate(mask) if marked} == covered(spans)
