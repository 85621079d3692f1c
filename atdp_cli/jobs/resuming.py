"""Where an interrupted run stands: what it has spent, what was saved of it, and how far it may still go."""

from collections.abc import Sequence
from dataclasses import dataclass

from atdp_cli.errors import BudgetError, InputError
from atdp_cli.events import FellBack, GoneOn, Notify
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.jobs.states import SavedState, latest_state
from atdp_cli.jobs.workplace import Workplace
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.journal import mend_journal
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, SubsampledGaussian, compact, private_events
from atdp_cli.training.allowance import Place, Within, allowance, one_step_events
from atdp_cli.training.plan import AnyPlan, Plan, StagePlan, strongest_epsilon
from atdp_cli.training.underway import StageResult


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a run goes on.

    Attributes:
        state: What was saved last; None where it begins at its beginning.
        end: Before what it ends, as `allowance` has it; None where it may go to its end.
    """

    state: SavedState | None = None
    end: Place | None = None


def standing(planned: Planned, work: Workplace, notify: Notify) -> Standing:
    """Where a run stands that was interrupted.

    Steps behind the saved state are taken again, with fresh samples and noise, and are spent again. Where that would
    pass a limit of ε, the run is to end before the step that would.

    Raises:
        InputError: The journal or the states cannot be used.
        BudgetError: No step with noise would be left to take.
    """
    plan = planned.plan
    spent = mend_journal(work.journal, one_step_events(plan), plan.ledger.delta)
    state = latest_state(work.root, notify)
    if state is not None and (not work.journal.exists() or work.journal.stat().st_size < state.journal):
        raise InputError(
            f"{work.journal} is shorter than when {state.folder.name} was saved, so it is not known what was spent.",
            "Restore it, or start again with --force.",
        )
    at = Place() if state is None else state.place
    results = () if state is None else tuple(result for result, _ in state.said.results)
    again = steps_of(spent) - _steps_before(plan, at, results)
    notify(GoneOn(stage=at.stage + 1, stages=len(plan.stages), step=at.step, again=again))
    return Standing(state=state, end=_end(planned, at, spent, notify))


def steps_of(events: Sequence[LedgerEvent]) -> int:
    """Steps with noise, of all the events together."""
    return sum(event.steps for event in events if isinstance(event, SubsampledGaussian))


def _steps_before(plan: Plan, at: Place, results: Sequence[StageResult] = ()) -> int:
    """Steps with noise that an uninterrupted run has spent at a place.

    Args:
        results: Of the stages before it, for where one ended early.
    """
    ended = [one.ended_after for one in results]
    return sum(_steps_in(plan.stages[position], ended[position : position + 1]) for position in range(at.stage)) + (
        min(at.step, steps_of(plan.stages[at.stage].events)) if at.stage < len(plan.stages) else 0
    )


def _steps_in(stage: AnyPlan, ended: Sequence[int | None]) -> int:
    planned = steps_of(stage.events)
    return planned if not ended or ended[0] is None else min(ended[0], planned)


def _end(planned: Planned, at: Place, spent: Sequence[LedgerEvent], notify: Notify) -> Place | None:
    limits, plan = limits_of(planned.request), planned.plan
    if not limits:
        return None
    within = _within(planned.request, plan.ledger)
    if not within((*plan.before, *spent)):
        raise BudgetError(
            f"The interrupted run has spent more than {limits} allows.",
            "Start again with --force: nothing of it was released.",
        )
    end = allowance(plan, at, spent, within)
    if end is None:
        return None
    stage = plan.stages[end.stage]
    if not _steps_before(plan, end):
        raise BudgetError(
            f"What the interrupted run has spent leaves no step with noise within {limits}.",
            "Start again with --force: nothing of it was released.",
        )
    steps = stage.steps if isinstance(stage, StagePlan) else 0
    notify(
        FellBack(
            what="budget",
            reason=f"{limits} now ends the run after step {end.step} of {steps} of stage {stage.stage.name}, as steps "
            "that are taken again are spent again",
        )
    )
    return end


def limits_of(request: HardenRequest) -> str:
    """The options that limit ε, as a user knows them; empty where there are none."""
    given = (("--target-epsilon", request.target_epsilon), ("--max-epsilon", request.max_epsilon))
    return " and ".join(f"{name} {value:g}" for name, value in given if value is not None)


def _within(request: HardenRequest, ledger: Ledger) -> Within:
    def fits(events: Sequence[LedgerEvent]) -> bool:
        private = private_events(compact(events))
        grid = grid_for(private)
        if request.target_epsilon is not None:
            whole = ledger.model_copy(update={"events": compact(events), "grid": grid})
            if strongest_epsilon(whole) > request.target_epsilon:
                return False
        return request.max_epsilon is None or epsilon_pld(private, ledger.delta, grid=grid) <= request.max_epsilon

    return fits


def ended_early(request: HardenRequest, plan: Plan, results: Sequence[StageResult]) -> str | None:
    """Why a run ended before its plan, in a sentence or two; None where it did not."""
    ended = [
        (stage, one.ended_after)
        for stage, one in zip(plan.stages, results, strict=True)
        if one.ended_after is not None and one.stopped_after is None
    ]
    if not ended:
        return None
    stage, after = ended[0]
    idle = [one.stage.name for one, taken in ended if not taken]
    steps = stage.steps if isinstance(stage, StagePlan) else 0
    reached = f"after step {after} of {steps} of stage {stage.stage.name}" if after else f"before stage {idle[0]}"
    left = f" It took no step of {', '.join(idle)}." if idle else ""
    return (
        f"The run ended {reached}: it had been interrupted, steps that were taken again were spent again, and "
        f"{limits_of(request)} allows no more.{left}"
    )


def missing_steps(plan: Plan, results: Sequence[StageResult]) -> int:
    """Steps with noise that were planned and not spent."""
    taken = _steps_before(plan, Place(stage=len(plan.stages)), results)
    return sum(steps_of(stage.events) for stage in plan.stages) - taken
