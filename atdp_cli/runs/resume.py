"""Where an interrupted run stands: what it has spent, what was saved of it, and how far it may still go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from safetensors import SafetensorError

from atdp_cli.errors import AtdpError, BudgetError, DivergedError, InputError, InterruptedRunError, RunError
from atdp_cli.events import FellBack, Notify, Resumed
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.journal import mend_journal
from atdp_cli.privacy.ledger import LedgerEvent, SubsampledGaussian, compact, private_events
from atdp_cli.runs.budget import Cursor, WithinBudget, allowance, one_step_events
from atdp_cli.runs.checkpoint import SavedState, latest_state, newest_cursor
from atdp_cli.runs.spec import RunSpec
from atdp_cli.runs.workspace import Workspace
from atdp_cli.training.clipping.select import out_of_memory
from atdp_cli.training.plan import AnyPlan, Plan, StagePlan, strongest_epsilon
from atdp_cli.training.state import StageResult


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """Where a run goes on.

    Attributes:
        state: What was saved last; None where it begins at its beginning.
        end: Before what it ends, as `allowance` has it; None where it may go to its end.
    """

    state: SavedState | None = None
    end: Cursor | None = None


def resume_point(spec: RunSpec, work: Workspace, notify: Notify) -> ResumePoint:
    """Where a run stands that was interrupted.

    Steps behind the saved state are taken again, with fresh samples and noise, and are spent again. Where that would
    pass a limit of ε, the run is to end before the step that would.

    Raises:
        InputError: The journal or the states cannot be used.
        BudgetError: No step with noise would be left to take.
    """
    plan = spec.plan
    spent = mend_journal(work.journal, one_step_events(plan), plan.ledger.delta)
    state = latest_state(work.root, notify)
    if state is not None and (not work.journal.exists() or work.journal.stat().st_size < state.journal):
        raise InputError(
            f"{work.journal} is shorter than when {state.folder.name} was saved, so it is not known what was spent.",
            "Restore it, or start again with --force.",
        )
    at = Cursor() if state is None else state.place
    results = () if state is None else tuple(result for result, _ in state.said.results)
    again = steps_of(spent) - _steps_before(plan, at, results)
    notify(Resumed(stage=at.stage + 1, stages=len(plan.stages), step=at.step, again=again))
    return ResumePoint(state=state, end=_end(spec, at, spent, notify))


def steps_of(events: Sequence[LedgerEvent]) -> int:
    """Steps with noise, of all the events together."""
    return sum(event.steps for event in events if isinstance(event, SubsampledGaussian))


def _steps_before(plan: Plan, at: Cursor, results: Sequence[StageResult] = ()) -> int:
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


def _end(spec: RunSpec, at: Cursor, spent: Sequence[LedgerEvent], notify: Notify) -> Cursor | None:
    limits, plan = spec.limits, spec.plan
    if not limits:
        return None
    within = _within(spec)
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


def _within(spec: RunSpec) -> WithinBudget:
    ledger = spec.plan.ledger

    def fits(events: Sequence[LedgerEvent]) -> bool:
        private = private_events(compact(events))
        grid = grid_for(private)
        if spec.target_epsilon is not None:
            whole = ledger.model_copy(update={"events": compact(events), "grid": grid})
            if strongest_epsilon(whole) > spec.target_epsilon:
                return False
        return spec.max_epsilon is None or epsilon_pld(private, ledger.delta, grid=grid) <= spec.max_epsilon

    return fits


def ended_early(spec: RunSpec, results: Sequence[StageResult]) -> str | None:
    """Why a run ended before its plan, in a sentence or two; None where it did not."""
    ended = [
        (stage, one.ended_after)
        for stage, one in zip(spec.plan.stages, results, strict=True)
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
        f"{spec.limits} allows no more.{left}"
    )


def missing_steps(plan: Plan, results: Sequence[StageResult]) -> int:
    """Steps with noise that were planned and not spent."""
    taken = _steps_before(plan, Cursor(stage=len(plan.stages)), results)
    return sum(steps_of(stage.events) for stage in plan.stages) - taken


@contextmanager
def resume_hint(spec: RunSpec, work: Workspace) -> Iterator[None]:
    """Errors that leave this are told with where the run stands and the command that goes on with it.

    Raises:
        AtdpError: As it was raised within, or for a full disk, memory that ran out, an interrupt.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        told = _told(error, spec, work)
        if told is None or told is error:
            raise
        raise told from error


def _told(error: BaseException, spec: RunSpec, work: Workspace) -> AtdpError | None:
    """The error in its place; None where there is nothing to add."""
    way, found = _way_on(spec, work), _expected(error, work)
    if found is None or not way:
        return found
    if isinstance(found, InterruptedRunError):
        return InterruptedRunError(found.problem, way)
    return type(found)(found.problem, f"{found.remedy} {_kept(spec, work) if _hopeless(found) else way}")


def _hopeless(error: AtdpError) -> bool:
    """Whether the same again would end the same."""
    return isinstance(error, DivergedError)


def _expected(error: BaseException, work: Workspace) -> AtdpError | None:
    """The error as one that a user can do something about; None for others."""
    match error:
        case AtdpError():
            return error
        case KeyboardInterrupt():
            return InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")
        case OSError() if not isinstance(error, BrokenPipeError):
            return _unwritten(work, str(error.strerror))
        case SafetensorError():
            return _unwritten(work, "weights")
        case MemoryError() | RuntimeError() if out_of_memory(error):
            return RunError("Memory ran out.", "Try a smaller --microbatch.")
    return None


def _unwritten(work: Workspace, why: str) -> RunError:
    return RunError(
        f"What belongs into {work.root} could not be written or read ({why}).", "Check free space and permissions."
    )


def _way_on(spec: RunSpec, work: Workspace) -> str:
    """Where the run stands and how to go on; empty where it begins at its beginning."""
    where = _where(spec, work)
    if where is None and work.session == 0:
        return ""
    kept = f"{work.root} keeps it {where}." if where else f"{work.root} keeps what was spent, and no state."
    return f"{kept} Go on with: {resume_command(spec)}"


def _kept(spec: RunSpec, work: Workspace) -> str:
    """What there is to say where going on has little hope."""
    return (
        f"{work.root} keeps the run {_where(spec, work) or 'without a state'}; --resume goes on from there at the "
        "same rate and most likely ends the same, --force starts anew."
    )


def resume_command(spec: RunSpec) -> str:
    """The command that goes on with the run."""
    given = spec.command
    if not given:
        return "the same, with --resume"
    return " ".join(given if "--resume" in given else (*given, "--resume"))


def _where(spec: RunSpec, work: Workspace) -> str | None:
    at = newest_cursor(work.root)
    if at is None:
        return None
    stages = spec.plan.stages
    if at.stage >= len(stages):
        return "as it was after its last step"
    stage = stages[at.stage]
    if at.step == 0 or not isinstance(stage, StagePlan):
        return f"as it was before stage {stage.stage.name}"
    return f"as it was after step {at.step} of {stage.steps} of stage {stage.stage.name}"
