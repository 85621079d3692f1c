"""What a plan says of the models that its stages read, and of stages that take nothing from the records."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import UsageError
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import (
    CheckpointHistory,
    Ledger,
    LedgerEvent,
    PlainTraining,
    ReadModel,
    SubsampledGaussian,
    private_events,
    read_ledger,
    write_ledger,
)
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.scope import UNKNOWN_REFERENCE, Guarantee
from atdp_cli.privacy.wording import PUBLIC_REFERENCE, guarantee_sentences
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, make_plan
from atdp_cli.training.recipe import RECIPES, Recipe, Train, parse_recipe, reads_records, reads_reference
from atdp_cli.training.solve import planned_epsilon, solve_noise

WEIGHTS = {"model.safetensors": "ab"}
DECLARED = Reference(ledger=None, weights=WEIGHTS, past="declared")
CORPUS = CorpusFacts(records=400, relation=hypothetical("line"))
NAMES = st.lists(st.sampled_from(sorted(RECIPES)), max_size=3)
READING = ("anchored", "interpolate")


def plan(name: str, *, reference: Reference | None = DECLARED, inherited: Ledger | None = None) -> Plan:
    return planned(parse_recipe(name), reference=reference, inherited=inherited)


def planned(recipe: Recipe, *, reference: Reference | None = DECLARED, inherited: Ledger | None = None) -> Plan:
    return make_plan(recipe, CORPUS, delta=1e-6, checkpoint_history="public", inherited=inherited, reference=reference)


def by_scope(ledger: Ledger) -> dict[str, Guarantee]:
    return {guarantee.scope: guarantee for guarantee in guarantees(ledger)}


def end_to_end(ledger: Ledger) -> Guarantee:
    return by_scope(ledger)["end_to_end"]


def nameless(events: Sequence[LedgerEvent]) -> list[dict[str, Any]]:
    return [event.model_dump() | {"stage": ""} for event in events]


def ledger_of(*events: LedgerEvent, checkpoint_history: CheckpointHistory = "public", run: str | None = None) -> Ledger:
    return Ledger(
        unit="line", checkpoint_history=checkpoint_history, records=400, delta=1e-6, grid=1e-4, events=events, run=run
    )


def spent(steps: int) -> SubsampledGaussian:
    return SubsampledGaussian(
        stage="dp-sgd", sampling_rate=0.1, noise_multiplier=2.0, clip_norm=0.1, steps=steps, relation=hypothetical()
    )


@pytest.mark.parametrize("before", ["", "no-dp+", "atdp+", "noise+"])
def test_pulling_back_costs_what_weighing_costs(before: str) -> None:
    """At the same place with the same schedule: a public model is free."""
    anchored, weighted = plan(f"{before}anchored"), plan(f"{before}atdp")
    assert planned_epsilon(anchored) == planned_epsilon(weighted) > 0
    assert nameless(private_events(anchored.ledger.events)) == nameless(private_events(weighted.ledger.events))
    assert anchored.training[-1].noise_multipliers == weighted.training[-1].noise_multipliers


@settings(max_examples=40, deadline=None)
@given(NAMES, NAMES)
def test_stages_that_read_no_record_spend_nothing(before: list[str], behind: list[str]) -> None:
    if not before and not behind:
        return
    for idle in ("noise", "interpolate"):
        actual = plan("+".join([*before, idle, *behind]))
        at = len(parse_recipe("+".join(before))) if before else 0
        assert not private_events(actual.stages[at].events)
        assert not any(isinstance(event, PlainTraining) for event in actual.stages[at].events)
        others = [event for place, stage in enumerate(actual.stages) if place != at for event in stage.events]
        assert private_events(actual.ledger.events) == private_events(others)


@pytest.mark.parametrize("idle", ["noise", "interpolate"])
def test_they_add_no_epsilon_before_or_behind(idle: str) -> None:
    alone = planned_epsilon(plan("dp-sgd"))
    assert planned_epsilon(plan(f"{idle}+dp-sgd")) == planned_epsilon(plan(f"dp-sgd+{idle}")) == alone
    assert end_to_end(plan(idle).ledger).epsilon in (None, 0)
    assert by_scope(plan(idle).ledger)["increment"].epsilon is None


def test_who_adds_noise_without_records_hears_that_it_protects_none() -> None:
    for name, reported in (("no-dp+noise", True), ("no-dp+interpolate", True), ("no-dp+anchored", False)):
        actual = plan(name).ledger
        assert ("No stage read the corpus under noise." in guarantee_sentences(actual, guarantees(actual))) is reported


@given(st.sampled_from([stage for recipe in RECIPES.values() for stage in recipe]))
def test_a_stage_says_in_the_ledger_what_it_reads(stage: Train) -> None:
    [actual] = planned((stage,)).stages
    read = [event for event in actual.events if isinstance(event, ReadModel)]
    assert bool(read) is reads_reference(stage)
    assert read == list(actual.events[: len(read)])
    assert bool(actual.events[len(read) :]) is reads_records(stage)
    if reads_reference(stage):
        assert (read[0].stage, read[0].past, read[0].weights) == (stage.name, "declared", WEIGHTS)
        with pytest.raises(UsageError, match="--reference"):
            planned((stage,), reference=None)


@pytest.mark.parametrize("name", READING)
def test_who_names_a_reference_declares_it_public(name: str) -> None:
    actual = end_to_end(plan(name).ledger)
    assert actual.epsilon != math.inf
    assert PUBLIC_REFERENCE in actual.assumptions
    assert PUBLIC_REFERENCE in by_scope(plan(f"redacted+{name}").ledger)["selective"].assumptions
    assert PUBLIC_REFERENCE not in end_to_end(plan("atdp").ledger).assumptions


@pytest.mark.parametrize("name", READING)
def test_a_reference_that_was_trained_on_the_corpus_voids_end_to_end(name: str) -> None:
    trained = ledger_of(PlainTraining(stage="no-dp", text="raw", relation=hypothetical()))
    actual = plan(name, reference=Reference(ledger=trained, weights=WEIGHTS, past="public")).ledger
    assert trained.events[0] in actual.events
    assert end_to_end(actual).epsilon == math.inf
    assert "selective" not in by_scope(
        plan(f"redacted+{name}", reference=Reference(ledger=trained, weights={}, past="public")).ledger
    )


@pytest.mark.parametrize("name", READING)
def test_a_reference_with_an_unknown_past_voids_both_guarantees(name: str) -> None:
    unknown = Reference(ledger=ledger_of(checkpoint_history="unknown"), weights=WEIGHTS, past="unknown")
    actual = plan(f"redacted+{name}", reference=unknown).ledger
    assert actual.checkpoint_history == "public"
    assert "selective" not in by_scope(actual)
    assert "selective" in by_scope(plan(f"redacted+{name}").ledger)
    alone = plan(name, reference=unknown).ledger
    assert end_to_end(alone).epsilon == math.inf
    said = " ".join(guarantee_sentences(alone, guarantees(alone)))
    assert f"not protected (ε = ∞), because {UNKNOWN_REFERENCE}" in said
    assert by_scope(alone)["increment"].epsilon == by_scope(plan(name).ledger)["increment"].epsilon


def test_what_the_reference_spent_composes_with_the_run() -> None:
    reference = Reference(ledger=ledger_of(spent(50)), weights=WEIGHTS, past="public")
    actual = plan("anchored", reference=reference)
    assert actual.before == (spent(50),)
    assert actual.ledger.events[0] == spent(50)
    assert planned_epsilon(actual) > max(planned_epsilon(plan("anchored")), planned_epsilon(plan("interpolate")))
    interpolated = plan("interpolate", reference=reference).ledger
    own = epsilon_pld([spent(50)], 1e-6, grid=interpolated.grid)
    assert end_to_end(interpolated).epsilon == pytest.approx(own, abs=1e-9)


def test_a_shared_ancestor_counts_once(tmp_path: Path) -> None:
    """MODEL was made from the reference, so what the reference spent is in both ledgers."""
    write_ledger(tmp_path / "base", ledger_of(spent(50), run="base"))
    base = read_ledger(tmp_path / "base")
    write_ledger(tmp_path / "model", ledger_of(*base.events, spent(20), run="model"))
    inherited = read_ledger(tmp_path / "model")
    reference = Reference(ledger=base, weights=WEIGHTS, past="public")
    actual = plan("anchored", inherited=inherited, reference=reference)
    assert actual.before == inherited.events
    assert planned_epsilon(actual) == pytest.approx(planned_epsilon(plan("anchored", inherited=inherited)), abs=1e-9)
    stranger = Reference(
        ledger=ledger_of(spent(50).model_copy(update={"run": "other"}), run="other"), weights=WEIGHTS, past="public"
    )
    assert planned_epsilon(plan("anchored", inherited=inherited, reference=stranger)) > planned_epsilon(actual)


def test_a_reference_keeps_its_marks() -> None:
    insecure = ledger_of(spent(1)).model_copy(update={"insecure_seed": True, "records": 900})
    actual = plan("anchored", reference=Reference(ledger=insecure, weights=WEIGHTS, past="public")).ledger
    assert (actual.insecure_seed, actual.records) == (True, 900)
    document = ledger_of(spent(1)).model_copy(update={"unit": "document"})
    with pytest.raises(UsageError, match="beside the reference protects each document"):
        plan("anchored", reference=Reference(ledger=document, weights=WEIGHTS, past="public"))


def test_a_ledger_that_read_a_model_survives_its_file(tmp_path: Path) -> None:
    kept = ledger_of(*plan("anchored+interpolate").ledger.events)
    write_ledger(tmp_path / "ledger.json", kept)
    assert read_ledger(tmp_path / "ledger.json") == kept


def test_noise_cannot_be_solved_for_where_it_hides_no_record() -> None:
    for name in ("noise", "atdp+noise"):
        with pytest.raises(UsageError, match="reads no record"):
            solve_noise(parse_recipe(name), 1.0, planned)
    with pytest.raises(UsageError, match="no DP stage"):
        solve_noise(parse_recipe("interpolate"), 1.0, planned)
    with pytest.raises(UsageError, match="no stage"):
        solve_noise(parse_recipe("base"), 1.0, planned)
    assert 0.999 <= planned_epsilon(planned(solve_noise(parse_recipe("noise+anchored"), 1.0, planned))) <= 1.0
