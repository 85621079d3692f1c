"""What a plan and its ledger say of stages that read decoys."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import UsageError
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import (
    CheckpointHistory,
    GaussianRelease,
    Ledger,
    LedgerEvent,
    PlainTraining,
    read_ledger,
    write_ledger,
)
from atdp_cli.privacy.scope import Guarantee, selective_void
from atdp_cli.privacy.wording import SAME_SHAPE, guarantee_sentences
from atdp_cli.training.plan import CorpusFacts, Plan, make_plan
from atdp_cli.training.recipe import ATDP, DECOYS, DP_SGD, FITTED_DECOYS, NO_DP, REDACTED, Recipe, TextVariant, Train
from atdp_cli.training.solve import planned_epsilon
from atdp_cli.training.stage_options import apply_settings, parse_setting
from tests.privacy.relations import TEXTS, noisy, plain, relation
from tests.training.stages import trained


def plan(recipe: Recipe, *, checkpoint_history: CheckpointHistory = "public", **flags: Any) -> Plan:
    corpus = CorpusFacts(records=400, relation=relation(**flags))
    return make_plan(recipe, corpus, delta=1e-6, checkpoint_history=checkpoint_history)


def ledger_of(*events: LedgerEvent, checkpoint_history: CheckpointHistory = "public") -> Ledger:
    return Ledger(unit="line", checkpoint_history=checkpoint_history, records=400, delta=1e-6, grid=1e-3, events=events)


def by_scope(ledger: Ledger) -> dict[str, Guarantee]:
    return {guarantee.scope: guarantee for guarantee in guarantees(ledger)}


def test_the_ledger_says_that_decoys_were_read(tmp_path: Path) -> None:
    ledger = plan(DECOYS).ledger
    assert ledger.events == (plain("pattern", stage="decoys"),)
    write_ledger(tmp_path / "ledger.json", ledger)
    [event] = read_ledger(tmp_path / "ledger.json").events
    assert event == ledger.events[0].model_copy(update={"run": ledger.run})


def test_the_ledger_says_that_equal_values_had_equal_decoys(tmp_path: Path) -> None:
    unequal = tuple(replace(stage, decoy_equality="none") for stage in FITTED_DECOYS if isinstance(stage, Train))
    apart, ledger = plan(unequal).ledger, plan(FITTED_DECOYS).ledger
    related = [event for event in ledger.events if isinstance(event, PlainTraining | GaussianRelease)]
    assert [event.relation and event.relation.shape for event in related] == ["pattern", "votes"]
    write_ledger(tmp_path / "ledger.json", ledger)
    read = read_ledger(tmp_path / "ledger.json")
    assert by_scope(read)["selective"].epsilon == by_scope(apart)["selective"].epsilon


def test_decoys_of_equal_values_are_drawn_apart_on_request_and_need_decoys() -> None:
    with pytest.raises(UsageError, match="reads no decoys"):
        apply_settings(NO_DP, [parse_setting(NO_DP, "no-dp.decoy-equality=none")])
    [stage] = apply_settings(DECOYS, [parse_setting(DECOYS, "decoys.decoy-equality=none")])
    assert stage == replace(trained(DECOYS)[0], decoy_equality="none")
    with pytest.raises(UsageError, match="Choose"):
        apply_settings(DECOYS, [parse_setting(DECOYS, "decoys.decoy-equality=corpus")])


def test_without_noise_nothing_finite_holds_end_to_end() -> None:
    actual = by_scope(plan(DECOYS).ledger)
    assert actual["end_to_end"].epsilon == math.inf
    assert actual["selective"].epsilon == 0
    assert actual["selective"].adjacency == "replace-one"
    assert actual["increment"].epsilon is None


HIDING = (relation("bytes"), relation("shape"), relation("pattern"))
PLAIN = st.builds(
    plain,
    st.sampled_from(sorted(TEXTS)),
    tier=st.sampled_from(("low-entity", "high-contextual")),
    human=st.sampled_from(((), ("allow",))),
)


@settings(deadline=None)
@given(st.lists(st.one_of(PLAIN, st.just(noisy(2.0, 3))), max_size=5), st.sampled_from(("public", "unknown")))
def test_selective_holds_where_every_plain_stage_hid_what_was_flagged(
    events: list[LedgerEvent], checkpoint_history: CheckpointHistory
) -> None:
    ledger = ledger_of(*events, checkpoint_history=checkpoint_history)
    stages = [event for event in events if isinstance(event, PlainTraining)]
    hidden = all(event.relation in HIDING for event in stages)
    actual = by_scope(ledger)
    assert (
        ("selective" in actual)
        is (selective_void(ledger) is None)
        is (bool(stages) and hidden and checkpoint_history == "public")
    )
    narrower = {scope for scope, guarantee in actual.items() if SAME_SHAPE in guarantee.assumptions}
    decoys = any(event.text == "decoy" for event in stages)
    assert narrower == ({"selective"} if "selective" in actual and decoys else set())
    reported = " ".join(guarantee_sentences(ledger, guarantees(ledger)))
    assert ("Flagged values" in reported) is ("selective" in actual or any(e.text != "raw" for e in stages))


def test_a_raw_stage_before_decoys_voids_what_they_hide() -> None:
    ledger = plan(NO_DP + DECOYS).ledger
    assert "selective" not in by_scope(ledger)
    assert any("read the raw text" in line for line in guarantee_sentences(ledger, guarantees(ledger)))


def test_decoys_and_placeholders_go_together() -> None:
    actual, before = (by_scope(plan((*recipe, *ATDP)).ledger) for recipe in (REDACTED + DECOYS, REDACTED * 2))
    assert actual["selective"].epsilon == before["selective"].epsilon
    assert SAME_SHAPE not in before["selective"].assumptions
    assert SAME_SHAPE in actual["selective"].assumptions


@pytest.mark.parametrize("recipe", [ATDP, DP_SGD])
def test_noise_on_decoys_is_accounted_as_on_raw_text(recipe: Recipe) -> None:
    [stage] = recipe
    assert isinstance(stage, Train)
    decoys = plan((replace(stage, text=TextVariant.DECOY),))
    assert planned_epsilon(decoys) == planned_epsilon(plan(recipe)) > 0
    assert by_scope(decoys.ledger) == by_scope(plan(recipe).ledger)
