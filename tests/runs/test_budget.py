"""Before what a run has to end that has spent more than it was planned to, held against walking there step by step."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.ledger import GaussianRelease, LedgerEvent, SubsampledGaussian, compact, private_events
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.runs.budget import Cursor, allowance, one_step_events
from atdp_cli.training.plan import Corpus, Plan, StagePlan, make_plan, planned_epsilon
from atdp_cli.training.recipe import DPSGD, AdamW, Nothing, Plain, Recipe, Text, Train, Uniform, Weighted

CORPUS = Corpus(records=20, unit="line", masks="stable")


def stage(name: str, epochs: int, *, sigma: float = 1.0, released: bool = False, nothing: bool = False) -> Train:
    objective = Weighted(weight="released", release_noise_multiplier=4.0) if released else Uniform()
    return Train(
        name=name,
        text=Text.RAW,
        objective=Nothing() if nothing else objective,
        mechanism=DPSGD(expected_batch=8, schedule=RiseReset(noise_multiplier=sigma, jitter=(1, 1))),
        epochs=epochs,
        optimizer=AdamW(),
    )


def plan_of(recipe: Recipe) -> Plan:
    return make_plan(recipe, CORPUS, delta=1e-6, prior="public")


def cost(events: Sequence[LedgerEvent]) -> float:
    """Not ε, but like it: it adds up, and less noise is dearer."""
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
            made.append(Train(name=f"s{number}", text=Text.RAW, objective=Uniform(), mechanism=Plain()))
            continue
        epochs, sigma = draw(st.integers(1, 3)), draw(st.sampled_from([0.5, 1.0, 2.0]))
        made.append(stage(f"s{number}", epochs, sigma=sigma, released=kind == "released", nothing=kind == "noise"))
    return tuple(made)


def walked(plan: Plan, at: Cursor, spent: float, limit: float) -> Cursor | None:
    """The same by going there: stage by stage, release by release, step by step."""
    for position, one in enumerate(plan.stages):
        if position < at.stage or not isinstance(one, StagePlan):
            continue
        begun = at if position == at.stage else Cursor(stage=position)
        taken = 0
        for event in private_events(one.events):
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
    one = plan.stages[position]
    step = data.draw(st.integers(0, one.steps)) if isinstance(one, StagePlan) else 0
    at = Cursor(stage=position, step=step, released=step > 0 or data.draw(st.booleans()))
    possible = one_step_events(plan)
    again = data.draw(st.lists(st.sampled_from(possible), max_size=4)) if possible else []
    # Off every sum of costs, which are eighths at most.
    limit = data.draw(st.integers(0, 200)) / 8 + 1e-3 + cost(again)
    found = allowance(plan, at, again, lambda events: cost(events) <= limit)
    assert found == walked(plan, at, cost(again), limit)


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
