"""What a plan and its ledger say of stages that read decoys."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.privacy.guarantee import SAME_SHAPE, Guarantee, guarantee_sentences, guarantees, selective_void
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, Masks, PlainTraining, Prior, read_ledger, write_ledger
from atdp_cli.training.plan import Corpus, Plan, make_plan, planned_epsilon
from atdp_cli.training.recipe import ATDP, DECOYS, DP_SGD, NO_DP, REDACTED, Recipe, Text, Train
from tests.privacy.ledgers import steps


def plan(recipe: Recipe, *, masks: Masks = "stable", prior: Prior = "public") -> Plan:
    return make_plan(recipe, Corpus(records=400, unit="line", masks=masks), delta=1e-6, prior=prior)


def ledger_of(*events: LedgerEvent, prior: Prior = "public") -> Ledger:
    return Ledger(unit="line", prior=prior, records=400, delta=1e-6, grid=1e-3, events=events)


def by_scope(ledger: Ledger) -> dict[str, Guarantee]:
    return {one.scope: one for one in guarantees(ledger)}


@pytest.mark.parametrize(("masks", "noted"), [("stable", "stable"), ("movable", "movable"), ("linked", "stable")])
def test_the_ledger_says_that_decoys_were_read(masks: Masks, noted: Masks, tmp_path: Path) -> None:
    """Placeholders can tell which texts are equal; decoys cannot."""
    ledger = plan(DECOYS, masks=masks).ledger
    assert ledger.events == (PlainTraining(stage="decoys", text="decoy", masks=noted),)
    write_ledger(tmp_path / "ledger.json", ledger)
    [event] = read_ledger(tmp_path / "ledger.json").events
    assert event == ledger.events[0].model_copy(update={"run": ledger.run})


def test_without_noise_nothing_finite_holds_end_to_end() -> None:
    found = by_scope(plan(DECOYS).ledger)
    assert found["end_to_end"].epsilon == math.inf
    assert found["selective"].epsilon == 0
    assert found["selective"].adjacency == "replace-one"
    assert found["increment"].epsilon is None


PLAIN = st.builds(
    PlainTraining,
    stage=st.just("a"),
    text=st.sampled_from(("raw", "redacted", "decoy")),
    masks=st.sampled_from((None, "stable", "movable", "linked")),
)


@settings(deadline=None)
@given(st.lists(st.one_of(PLAIN, st.just(steps(0.1, 2.0, 3))), max_size=5), st.sampled_from(("public", "unknown")))
def test_selective_holds_where_every_plain_stage_hid_what_was_flagged(events: list[LedgerEvent], prior: Prior) -> None:
    ledger = ledger_of(*events, prior=prior)
    plain = [event for event in events if isinstance(event, PlainTraining)]
    hidden = all(event.text != "raw" and event.masks == "stable" for event in plain)
    found = by_scope(ledger)
    assert ("selective" in found) is (selective_void(ledger) is None) is (bool(plain) and hidden and prior == "public")
    narrower = {scope for scope, one in found.items() if SAME_SHAPE in one.assumptions}
    decoys = any(event.text == "decoy" for event in plain)
    assert narrower == ({"selective"} if "selective" in found and decoys else set())
    told = " ".join(guarantee_sentences(ledger, guarantees(ledger)))
    assert ("For the flagged characters alone" in told) is ("selective" in found or any(e.text != "raw" for e in plain))


def test_a_raw_stage_before_decoys_voids_what_they_hide() -> None:
    ledger = plan(NO_DP + DECOYS).ledger
    assert "selective" not in by_scope(ledger)
    assert any("read the raw text" in line for line in guarantee_sentences(ledger, guarantees(ledger)))


def test_decoys_and_placeholders_go_together() -> None:
    found, before = (by_scope(plan((*two, *ATDP)).ledger) for two in (REDACTED + DECOYS, REDACTED * 2))
    assert found["selective"].epsilon == before["selective"].epsilon
    assert SAME_SHAPE not in before["selective"].assumptions
    assert SAME_SHAPE in found["selective"].assumptions


@pytest.mark.parametrize("recipe", [ATDP, DP_SGD])
def test_noise_on_decoys_is_accounted_as_on_raw_text(recipe: Recipe) -> None:
    [stage] = recipe
    assert isinstance(stage, Train)
    decoys = plan((replace(stage, text=Text.DECOY),))
    assert planned_epsilon(decoys) == planned_epsilon(plan(recipe)) > 0
    assert by_scope(decoys.ledger) == by_scope(plan(recipe).ledger)
