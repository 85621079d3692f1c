"""Drawing sentences for people to review."""

import itertools
import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.detection.review.sample import Drawn, Sentence, sample_sentences, sentences_of
from atdp_cli.errors import UsageError
from tests.strategies import flagged_texts

SPAN = Span(0, 1, "PERSON", "ner", Tier.LOW_ENTITY)


def sentence(position: int, flagged: bool, text: str = "a") -> Sentence:
    return Sentence(Record(str(position), text), position, (0, 1), (SPAN,) if flagged else ())


def drawn(flags: list[bool], rate: float, seed: int) -> list[Drawn]:
    return list(sample_sentences((sentence(at, flag) for at, flag in enumerate(flags)), rate, random.Random(seed)))


rates = st.floats(0.001, 1, exclude_min=True)


@given(st.lists(st.booleans(), max_size=300), rates, st.integers(0, 99))
def test_the_sample_has_the_asked_size_and_stands_for_the_corpus(flags: list[bool], rate: float, seed: int) -> None:
    actual = drawn(flags, rate, seed)
    assert abs(len(actual) - rate * len(flags)) <= 2
    places = [sampled.sentence.position for sampled in actual]
    assert places == sorted(set(places))
    for stratum in (True, False):
        weights = [sampled.stands_for for sampled in actual if bool(sampled.sentence.spans) is stratum]
        assert math.isclose(sum(weights), flags.count(stratum))
    assert all(sampled.stands_for >= 1 for sampled in actual)


@given(st.integers(1, 200), rates, st.integers(0, 99))
def test_half_is_flagged_where_the_corpus_alternates(pairs: int, rate: float, seed: int) -> None:
    strata = Counter(bool(sampled.sentence.spans) for sampled in drawn([True, False] * pairs, rate, seed))
    assert abs(strata[True] - strata[False]) <= 1


@pytest.mark.parametrize("flagged", [True, False])
def test_where_a_stratum_is_missing_the_other_gives_both(flagged: bool) -> None:
    assert len(drawn([flagged] * 1000, 0.01, 0)) == 10
    assert len(drawn([flagged] * 5, 0.01, 0)) == 2
    assert len(drawn([flagged], 0.01, 0)) == 1
    assert drawn([], 0.01, 0) == []


def test_every_sentence_of_a_stratum_is_as_likely_as_the_others() -> None:
    flags = [at % 5 == 0 for at in range(40)]
    runs = 3000
    counts = Counter(sampled.sentence.position for seed in range(runs) for sampled in drawn(flags, 0.05, seed))
    for stratum, one_in in ((True, 8), (False, 32)):
        expected = runs / one_in
        cells = [counts[at] for at, flag in enumerate(flags) if flag is stratum]
        assert sum(cells) == runs
        squares = sum((cell - expected) ** 2 / expected for cell in cells)
        freedom = len(cells) - 1
        assert squares < freedom + 5 * math.sqrt(2 * freedom)


def test_a_pair_of_one_stratum_is_uniform() -> None:
    pairs = Counter(
        tuple(sampled.sentence.position for sampled in drawn([True] * 5, 0.4, seed)) for seed in range(3000)
    )
    assert set(pairs) == set(itertools.combinations(range(5), 2))
    assert all(abs(count - 300) < 5 * math.sqrt(300) for count in pairs.values())


def test_a_block_is_never_held() -> None:
    def long() -> Iterator[Sentence]:
        for at in range(2000):
            yield sentence(at, at % 2 == 0, "x" * 50_000)

    tracemalloc.start()
    try:
        assert sum(1 for _ in sample_sentences(long(), 0.001, random.Random(1))) == 2
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.01, math.nan])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(UsageError, match=r"review-share is"):
        sample_sentences([], rate, random.Random(0))


@given(flagged_texts(), st.sampled_from(list(Tier)), st.data())
def test_a_sentence_is_flagged_where_a_span_of_the_tier_touches_it(
    case: tuple[str, list[Span]], tier: Tier, data: st.DataObject
) -> None:
    text, spans = case
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1))))) if len(text) > 1 else []
    ranges = tuple(itertools.pairwise([0, *cuts, len(text)])) if text else ()
    detection = Detection(Record("1", text), tuple(sorted(spans)), (), ranges)
    actual = list(sentences_of([detection], tier))
    seen = {at for found in actual for at in range(*found.place)}
    assert {at for at, character in enumerate(text) if character.isalnum()} <= seen
    within = [span for span in spans if list(Tier).index(span.tier) <= list(Tier).index(tier)]
    flagged = {at for span in within for at in range(span.start, span.end)}
    for found in actual:
        piece = text[slice(*found.place)]
        assert piece == piece.strip()
        assert any(map(str.isalnum, piece))
        assert bool(found.spans) is bool(flagged & set(range(*found.place)))


def test_sentences_of_real_detections(pipeline: Any) -> None:
    records = [Record("1", "Emma Clarke called. Nothing was wrong. -- "), Record("2", "It was in Berlin.")]
    actual = list(sentences_of(detect_records(records, pipeline=pipeline), Tier.LOW_ENTITY))
    reported = [(found.position, found.record.text[slice(*found.place)], bool(found.spans)) for found in actual]
    assert reported[0] == (0, "Emma Clarke called.", True)
    assert reported[1][:1] + reported[1][2:] == (0, False)
    assert reported[-1] == (1, "It was in Berlin.", True)
