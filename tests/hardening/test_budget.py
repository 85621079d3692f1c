"""Before what a run has to end that has spent more than it was planned to, held against walking there step by step."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.hardening.budget import Cursor, EpsilonLimits, allowance, events_left_by, one_step_events, within_limits
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.ledger import (
    GaussianRelease,
    LedgerEvent,
    PlainTraining,
    SubsampledGaussian,
    compact,
    private_events,
)
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.training.objectives import NoLoss, Uniform
from atdp_cli.training.plan import CorpusFacts, Plan, StagePlan, make_plan
from atdp_cli.training.recipe import DPSGD, NonPrivate, Recipe, TextVariant, Train
from atdp_cli.training.solve import planned_epsilon, strongest_epsilon

CORPUS = CorpusFacts(records=20, relation=hypothetical("line"))


def stage(name: str, epochs: int, *, sigma: float = 1.0, released: bool = False, nothing: bool = False) -> Train:
    return Train(
        name=name,
        text=TextVariant.DECOY if released else TextVariant.RAW,
        objective=NoLoss() if nothing else Uniform(),
        mechanism=DPSGD(expected_batch=8, schedule=RiseReset(noise_multiplier=sigma, jitter=(1, 1))),
        epochs=epochs,
        release_noise_multiplier=4.0 if released else None,
    )


def plan_of(recipe: Recipe) -> Plan:
    return make_plan(recipe, CORPUS, delta=1e-6, checkpoint_history="public")


def cost(events: Sequence[LedgerEvent]) -> float:
    """Not ε, but like it: it adds up, and less noise costs more."""
    return sum(
        (event.steps if isinstance(event, SubsampledGaussian) else 1) / event.noise_multiplier**2
        for event in private_events(events)
    )


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    kinds = draw(st.lists(st.sampled_from(["private", "released", "plain", "noise"]), min_size=1, max_size=3))
    made: list[Train] = []
    for number, kind in enumerate(kinds):
        if kind == "plain":
            made.append(Train(name=f"s{number}", text=TextVariant.RAW, objective=Uniform(), mechanism=NonPrivate()))
            continue
        epochs, sigma = draw(st.integers(1, 3)), draw(st.sampled_from([0.5, 1.0, 2.0]))
        made.append(stage(f"s{number}", epochs, sigma=sigma, released=kind == "released", nothing=kind == "noise"))
    return tuple(made)


def walked(plan: Plan, at: Cursor, spent: float, limit: float) -> Cursor | None:
    """The same by going there: stage by stage, release by release, step by step."""
    for position, stage in enumerate(plan.stages):
        if position < at.stage or not isinstance(stage, StagePlan):
            continue
        begun = at if position == at.stage else Cursor(stage=position)
        taken = 0
        for event in private_events(stage.events):
            if isinstance(event, GaussianRelease):
                if not begun.released:
                    spent += cost([event])
                    if spent > limit:
                        return Cursor(stage=position, step=0)
                continue
            for _ in range(event.steps):
                if taken >= begun.step:
                    spent += cost([event.model_copy(update={"steps": 1})])
                    if spent > limit:
                        return Cursor(stage=position, step=taken)
                taken += 1
    return None


@given(recipes(), st.data())
def test_it_is_where_walking_ends(recipe: Recipe, data: st.DataObject) -> None:
    plan = plan_of(recipe)
    position = data.draw(st.integers(0, len(plan.stages) - 1))
    planned = plan.stages[position]
    step = data.draw(st.integers(0, planned.steps)) if isinstance(planned, StagePlan) else 0
    at = Cursor(stage=position, step=step, released=step > 0 or data.draw(st.booleans()))
    possible = one_step_events(plan)
    again = data.draw(st.lists(st.sampled_from(possible), max_size=4)) if possible else []
    # Off every sum of costs, which are eighths at most.
    limit = data.draw(st.integers(0, 200)) / 8 + 1e-3 + cost(again)
    actual = allowance(plan, at, again, lambda events: cost(events) <= limit)
    assert actual == walked(plan, at, cost(again), limit)


def test_an_uninterrupted_run_goes_to_its_end() -> None:
    plan = plan_of((stage("a", 3), stage("b", 1)))
    limit = planned_epsilon(plan)

    def within(events: Sequence[LedgerEvent]) -> bool:
        ledger = plan.ledger.model_copy(update={"events": compact(events)})
        return planned_epsilon(Plan(stages=plan.stages, ledger=ledger)) <= limit

    assert allowance(plan, Cursor(), (), within) is None
    assert allowance(plan, Cursor(), one_step_events(plan)[:1], within) == Cursor(
        stage=1, step=plan.training[1].steps - 1
    )


def test_no_limit_and_every_limit() -> None:
    plan = plan_of((stage("a", 1),))
    assert allowance(plan, Cursor(), (), lambda _: True) is None
    assert allowance(plan, Cursor(), (), lambda events: not private_events(events)) == Cursor(stage=0, step=0)


# --- With ε itself


def without_noise(name: str, text: TextVariant) -> Train:
    return Train(name=name, text=text, objective=Uniform(), mechanism=NonPrivate())


@st.composite
def mixed_recipes(draw: st.DrawFn) -> Recipe:
    """Up to four stages, at least one with noise over the records, and what voids a scope or changes it around it."""
    kinds = draw(st.lists(st.sampled_from([*TextVariant, "private", "released", "noise"]), max_size=3))
    kinds.insert(draw(st.integers(0, len(kinds))), draw(st.sampled_from(["private", "released"])))
    return tuple(
        without_noise(f"s{number}", kind)
        if isinstance(kind, TextVariant)
        else stage(
            f"s{number}",
            draw(st.integers(1, 2)),
            sigma=draw(st.sampled_from([1.0, 2.0])),
            released=kind == "released",
            nothing=kind == "noise",
        )
        for number, kind in enumerate(kinds)
    )


Line = tuple[int, int, LedgerEvent]
"""A line of the journal: the position of its stage, the number of its step or 0, and the event."""


def journal_lines(plan: Plan) -> list[Line]:
    """What an uninterrupted run writes."""
    lines: list[Line] = []
    for position, stage in enumerate(plan.stages):
        number = 0
        for event in stage.events:
            steps = event.steps if isinstance(event, SubsampledGaussian) else 1
            for _ in range(steps):
                number += isinstance(event, SubsampledGaussian)
                single = event.model_copy(update={"steps": 1}) if isinstance(event, SubsampledGaussian) else event
                lines.append((position, number, single))
    return lines


def until(lines: Sequence[Line], end: Cursor) -> list[LedgerEvent]:
    """Those that a run has written which ends at a position."""
    return [
        event
        for stage, number, event in lines
        if stage < end.stage or (stage == end.stage and end.step and number <= end.step)
    ]


@pytest.mark.parametrize(
    "examples", [*(pytest.param(n, marks=pytest.mark.ci) for n in (6, 60)), pytest.param(400, marks=pytest.mark.deep)]
)
def test_the_ledger_that_a_resumed_run_leaves_keeps_the_target_and_one_more_step_would_pass_it(examples: int) -> None:
    """Whatever else the recipe trains on before and after it; the ledger is put together by walking the journal."""

    @settings(max_examples=examples, deadline=None, derandomize=True)
    @given(mixed_recipes(), st.booleans(), st.data())
    def ends(recipe: Recipe, public: bool, data: st.DataObject) -> None:
        plan = make_plan(recipe, CORPUS, delta=1e-6, checkpoint_history="public" if public else "unknown")
        target = planned_epsilon(plan) * data.draw(st.sampled_from([1.0, 1.2]))
        lines = journal_lines(plan)
        ends = [
            Cursor(stage=position, step=step)
            for position, planned in enumerate(plan.training)
            for step in range((planned.steps if planned.sampling_rate is not None else 0) + 1)
        ]
        at = data.draw(st.sampled_from(ends))
        written = until(lines, at)
        noisy = [event for event in written if isinstance(event, SubsampledGaussian)]
        again = data.draw(st.lists(st.sampled_from(noisy), max_size=9)) if noisy else []

        def left(end: Cursor) -> list[LedgerEvent]:
            return [*written, *again, *until(lines, end)[len(written) :]]

        def epsilon(events: Sequence[LedgerEvent]) -> float:
            private = private_events(compact(events))
            ledger = plan.ledger.model_copy(update={"events": compact(events), "grid": grid_for(private)})
            return strongest_epsilon(ledger)

        def keeps(end: Cursor) -> bool:
            """Both as the run leaves it and in the scope that the target was solved for, which all stages decide."""
            events = left(end)
            stages = [event for _, _, event in lines if isinstance(event, PlainTraining)]
            return max(epsilon(events), epsilon([*events, *stages])) <= target

        at = replace(at, released=at.step > 0)
        within = within_limits(plan, EpsilonLimits(target, None))
        actual = allowance(plan, at, [*written, *again], within)
        whole = Cursor(stage=len(plan.stages))
        if actual is None:
            assert epsilon(left(whole)) <= target
            return
        assert epsilon(left(whole)) > target
        behind = [end for end in ends if (end.stage, end.step) > (actual.stage, actual.step)]
        assert not any(keeps(end) for end in behind)
        assert compact(events_left_by(plan, at, [*written, *again], actual)) == compact(left(actual))
        before = [end for end in ends if (at.stage, at.step) <= (end.stage, end.step) <= (actual.stage, actual.step)]
        assert keeps(actual) or not any(keeps(end) for end in before)

    ends()
