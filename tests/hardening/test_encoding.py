"""From records to windows: placeholders carry no weight in any text."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Range, Span, Tier
from atdp_cli.detection.detect import PLACEHOLDERS
from atdp_cli.hardening.encode import Encoding, encode
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.model.windows import align_record
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.frequencies import by_frequency, frequencies, tables
from atdp_cli.replacement.placeholders import Style, fresh_masking
from atdp_cli.training.examples import make_example
from atdp_cli.training.objectives import Objective, Uniform, Weighted
from atdp_cli.training.recipe import TextVariant
from tests.replacement.twins import Twins, twins
from tests.strategies import flagged_texts

OBJECTIVES: list[Objective] = [Uniform(), Weighted(unflagged_weight=0.2), Weighted(unflagged_weight="record")]


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder: Path) -> Any:
    return load_tokenizer(checkpoint_folder)


def actual(text: str, name: str, label: str = "PERSON") -> list[Span]:
    """Where `name` stands in `text`."""
    starts = [at for at in range(len(text)) if text.startswith(name, at)]
    return [Span(at, at + len(name), label, "ner", Tier.LOW_ENTITY) for at in starts]


def weightless(tokenizer: Any, record: FlaggedRecord, kind: TextVariant, objective: Objective) -> list[bool]:
    """For each token of a record but the start token, whether it has no weight in the loss."""
    [windows] = encode([record], kind, Encoding(tokenizer=tokenizer, context=500, windows=1))
    [weights] = make_example(windows, objective).weights
    return [weight == 0 for weight in weights[1:]]


def touching(tokenizer: Any, text: str, places: Sequence[Range]) -> list[bool]:
    """For each token but the start token, whether it shares a character with one of the places."""
    _, offsets = align_record(tokenizer, text, with_end=True)
    return [any(start < b and a < end for a, b in places) for start, end in offsets[1:]]


TEXT = "Emma Clarke said the order,Emma Clarke:was shipped to Emma Clarke"


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("style", Style)
def test_placeholders_of_an_earlier_redaction_weigh_nothing_and_all_else_does(
    tokenizer: Any, style: Style, objective: Objective
) -> None:
    before = redact_text(TEXT, actual(TEXT, "Emma Clarke"), fresh_masking(style))
    record = FlaggedRecord(Record("1", before.text), tuple(actual(before.text, "order")))
    expected = touching(tokenizer, before.text, before.places)
    assert any(expected)
    assert not all(expected)
    assert weightless(tokenizer, record, TextVariant.RAW, objective) == expected


@pytest.mark.parametrize("earlier", Style)
def test_placeholders_of_two_redactions_weigh_nothing_and_all_else_does(tokenizer: Any, earlier: Style) -> None:
    """Those that harden puts in itself also where the label is not one of the detector's."""
    before = redact_text(TEXT, actual(TEXT, "Emma Clarke"), fresh_masking(earlier))
    again = redact_text(before.text, actual(before.text, "order", "GADGET"))
    [shown] = {before.text[start:end] for start, end in before.places}
    places = [*again.places, *((span.start, span.end) for span in actual(again.text, shown))]
    record = FlaggedRecord(Record("1", before.text), tuple(actual(before.text, "order", "GADGET")))
    expected = touching(tokenizer, again.text, places)
    assert weightless(tokenizer, record, TextVariant.REDACTED, Uniform()) == expected


@settings(deadline=None, max_examples=60)
@given(case=flagged_texts())
def test_what_harden_redacts_weighs_nothing(tokenizer: Any, case: tuple[str, list[Span]]) -> None:
    text, spans = case
    redacted = redact_text(text, spans)
    if not redacted.text:
        return
    expected = touching(tokenizer, redacted.text, redacted.places)
    record = FlaggedRecord(Record("1", text), tuple(spans))
    assert weightless(tokenizer, record, TextVariant.REDACTED, Uniform()) == expected


@settings(deadline=None, max_examples=60)
@given(case=flagged_texts(), seed=st.integers(0, 9))
def test_decoys_are_targets_and_sensitive(tokenizer: Any, case: tuple[str, list[Span]], seed: int) -> None:
    text, spans = case
    [expected] = decoy_record([(text, spans)], uniformly(random.Random(seed).randrange), "record")
    if not expected.text:
        return
    encoding = Encoding(tokenizer=tokenizer, context=500, windows=1)
    [[window]] = encode(
        [FlaggedRecord(Record("1", text), tuple(spans))],
        TextVariant.DECOY,
        encoding,
        uniformly(random.Random(seed).randrange),
    )
    shown = align_record(tokenizer, expected.text, with_end=True)[0]
    assert window.token_ids.tolist() == list(shown)
    assert window.sensitive[1:].tolist() == touching(tokenizer, expected.text, expected.places)
    earlier = [match.span() for match in PLACEHOLDERS.finditer(expected.text)]
    assert window.ignored[1:].tolist() == touching(tokenizer, expected.text, earlier)


@pytest.mark.ci
@settings(deadline=None, max_examples=500)
@given(pair=twins(), seed=st.integers(0, 2**32), fitted=st.booleans())
def test_neighbours_of_one_pattern_have_the_same_tokens(tokenizer: Any, pair: Twins, seed: int, fitted: bool) -> None:
    """Records that differ in flagged characters alone, with equal shapes and pattern, under one stream."""
    encoding = Encoding(tokenizer=tokenizer, context=500, windows=4)
    counts = {name: [1.0 / (at + 1) for at in range(table.size)] for name, table in tables().items()}
    shares = frequencies(counts) if fitted else {}
    ours, theirs = (
        encode(
            [FlaggedRecord(Record("1", text), tuple(spans))] * 2,
            TextVariant.DECOY,
            encoding,
            by_frequency(random.Random(seed).randrange, shares),
            "record",
        )
        for text, spans in (pair.ours, pair.theirs)
    )
    for our, other in zip(ours, theirs, strict=True):
        assert [window.token_ids.tolist() for window in our] == [window.token_ids.tolist() for window in other]
        assert [window.sensitive.tolist() for window in our] == [window.sensitive.tolist() for window in other]


def test_the_neighbours_have_equal_values_often_enough() -> None:
    equal: list[bool] = []

    @settings(deadline=None, max_examples=100, database=None)
    @given(pair=twins())
    def check(pair: Twins) -> None:
        equal.append(pair.equal)

    check()
    assert sum(equal) > 20


def test_a_record_and_its_source_have_equal_decoys(tokenizer: Any) -> None:
    texts = ("Emma Clarke asked for 4930", "the order 4930 of EMMA CLARKE was shipped")
    source, target = (
        FlaggedRecord(
            Record("1", text),
            (*actual(text, "Emma Clarke"), *actual(text, "EMMA CLARKE"), *actual(text, "4930", "NUMBER")),
        )
        for text in texts
    )
    encoding = Encoding(tokenizer=tokenizer, context=500, windows=3, start=7)
    record = replace(target, source=source)
    [[window]] = encode([record], TextVariant.DECOY, encoding, uniformly(random.Random(5).randrange), "record")
    assert window.source is not None
    asked, shipped = (
        tokenizer.decode(ids).replace("<|endoftext|>", "").split() for ids in (window.source, window.token_ids[1:])
    )
    assert asked[-1] == shipped[2] != "4930"
    assert [word.upper() for word in asked[:2]] == shipped[4:6] != ["EMMA", "CLARKE"]


@pytest.mark.parametrize("kind", TextVariant)
def test_a_pair_is_one_window_with_its_source_and_redaction_masks_both(tokenizer: Any, kind: TextVariant) -> None:
    texts = ("Emma Clarke asked for help", "the order of Emma Clarke was shipped")
    source, target = (FlaggedRecord(Record("1", text), tuple(actual(text, "Emma Clarke"))) for text in texts)
    encoding = Encoding(tokenizer=tokenizer, context=500, windows=3, start=7)
    [[window]] = encode([replace(target, source=source)], kind, encoding, lambda place: place.choices[0])
    assert window.token_ids[0] == 7
    assert window.source is not None
    instead = {TextVariant.RAW: "Emma Clarke", TextVariant.REDACTED: "[PERSON]", TextVariant.DECOY: "Aaron Abbott"}
    seen = [tokenizer.decode(ids) for ids in (window.source, window.token_ids[1:])]
    for text, decoded in zip(texts, seen, strict=True):
        shown = text.replace("Emma Clarke", instead[kind])
        assert decoded.replace("<|endoftext|>", "") == shown
    assert window.sensitive.any() == (kind is not TextVariant.REDACTED)
    assert window.ignored.any() == (kind is TextVariant.REDACTED)
