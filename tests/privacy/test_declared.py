"""Decoyed text and declared training in a ledger: what is declared is never more than declared."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.guarantee import check_seen, guarantees
from atdp_cli.privacy.ledger import (
    CheckpointHistory,
    DeclaredTraining,
    DecoyedText,
    Ledger,
    LedgerEvent,
    ReadModel,
    read_ledger,
    write_ledger,
)
from atdp_cli.privacy.scope import Guarantee, is_of_text
from atdp_cli.privacy.wording import COPIES, DECLARED, DECLARED_TRAINING, PUBLIC_START, guarantee_sentences
from tests.privacy.relations import noisy, plain, relation, votes

TEXT = DecoyedText(run="d", stage="fitted-decoys", copies=3, relation=relation("shape"))
DECLARES = DeclaredTraining(run="m", stage="declared", corpora=("d",), weights={"model.safetensors": "ab"})
MOVED = DecoyedText(run="e", stage="decoys", copies=1, relation=relation("shape", human=("allow",)))

EVENTS = st.sampled_from(
    (
        noisy(2.0, 3),
        votes(),
        plain("shape"),
        plain("bytes"),
        plain("none"),
        TEXT,
        MOVED,
        ReadModel(stage="anchored", past="declared", weights={}),
        ReadModel(stage="anchored", past="unknown", weights={}),
    )
)


def ledger(*events: LedgerEvent, checkpoint_history: CheckpointHistory = "public") -> Ledger:
    return Ledger(unit="line", checkpoint_history=checkpoint_history, records=100, delta=1e-6, grid=1e-3, events=events)


def by_scope(actual: Ledger) -> dict[str, Guarantee]:
    return {guarantee.scope: guarantee for guarantee in guarantees(actual)}


@settings(max_examples=40)
@given(st.lists(EVENTS, max_size=4), st.integers(0, 4), st.sampled_from(("public", "unknown")))
def test_declared_training_gives_no_scope_but_its_own(
    events: list[LedgerEvent], place: int, checkpoint_history: CheckpointHistory
) -> None:
    """Wherever it stands among the events: the selective figure is only declared, and nothing else is better."""
    events = [*events, TEXT]
    seen = by_scope(ledger(*events, checkpoint_history=checkpoint_history))
    actual = by_scope(ledger(*events[:place], DECLARES, *events[place:], checkpoint_history=checkpoint_history))
    assert not {"selective", "uncounted"} & actual.keys()
    assert actual["end_to_end"].epsilon == math.inf
    assert ("declared" in actual) == ("selective" in seen)
    if "declared" in actual:
        declared, selective = actual["declared"], seen["selective"]
        assert (declared.epsilon, declared.delta, declared.neighbours) == (
            selective.epsilon,
            selective.delta,
            selective.neighbours,
        )
        assert declared.adjacency == "replace-one"
        assert {DECLARED_TRAINING, PUBLIC_START} <= set(declared.assumptions)


@settings(max_examples=30)
@given(st.lists(EVENTS, max_size=3), st.sampled_from(("public", "unknown")))
def test_it_survives_composition_with_any_ledger(
    events: list[LedgerEvent], checkpoint_history: CheckpointHistory
) -> None:
    adopted = ledger(votes().model_copy(update={"run": "d"}), TEXT, DECLARES)
    other = ledger(*(event.model_copy(update={"run": "o"}) for event in events), checkpoint_history=checkpoint_history)
    for pair in ((adopted, other), (other, adopted)):
        composed = compose_ledgers(pair)
        assert DECLARES in composed.events
        assert "selective" not in by_scope(composed)
        with pytest.raises(BudgetError, match=r"run\.accept-declared"):
            check_seen(composed)


def test_two_models_of_the_same_copies_spend_the_release_once() -> None:
    released = votes().model_copy(update={"run": "d"})
    models = [ledger(released, TEXT, DECLARES.model_copy(update={"run": name})) for name in ("m", "n")]
    together = compose_ledgers(models)
    assert [event.kind for event in together.events] == [
        "gaussian_release",
        "decoyed_text",
        "declared_training",
        "declared_training",
    ]
    assert by_scope(together)["declared"].epsilon == by_scope(models[0])["declared"].epsilon


@settings(max_examples=30)
@given(st.lists(EVENTS, max_size=4))
def test_text_that_is_not_flagged_keeps_the_whole_from_any_finite_figure(events: list[LedgerEvent]) -> None:
    assert by_scope(ledger(*events, TEXT))["end_to_end"].epsilon == math.inf


def test_copies_alone_speak_of_no_checkpoint_and_trained_models_do() -> None:
    copies, adopted = ledger(votes(), TEXT), ledger(votes(), TEXT, DECLARES)
    assert is_of_text(copies)
    assert not is_of_text(adopted)
    assert not is_of_text(ledger(votes(), TEXT, noisy()))
    assert COPIES in by_scope(copies)["selective"].assumptions
    assert PUBLIC_START not in by_scope(copies)["selective"].assumptions
    assert by_scope(copies)["uncounted"].epsilon == 0
    said = " ".join(guarantee_sentences(adopted, guarantees(adopted)))
    assert DECLARED in said
    assert "text that is not flagged stands in the copies" in said


def test_uniform_decoys_are_exact_and_still_only_declared() -> None:
    actual = by_scope(ledger(TEXT, DECLARES))
    assert (actual["declared"].epsilon, actual["declared"].delta) == (0.0, 0.0)
    assert actual.keys() == {"end_to_end", "declared", "increment"}


def test_lists_taken_from_the_data_void_what_is_declared_too() -> None:
    assert by_scope(ledger(votes(), MOVED, DECLARES)).keys() == {"end_to_end", "increment"}


def test_decoyed_text_and_declared_training_survive_the_file(tmp_path: Path) -> None:
    for actual in (ledger(votes(), TEXT), ledger(TEXT, DECLARES)):
        write_ledger(tmp_path / "ledger.json", actual)
        assert read_ledger(tmp_path / "ledger.json").events == actual.events
