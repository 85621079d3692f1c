"""Where an interrupted run resumes: what it has spent, what was saved, and how far it may go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from safetensors import SafetensorError

from atdp_cli.errors import (
    AtdpError,
    BudgetError,
    ConformanceError,
    DivergedError,
    InputError,
    InterruptedRunError,
    RunError,
)
from atdp_cli.events import ChoiceWarning, Notify, Resumed
from atdp_cli.hardening.budget import Cursor, allowance, events_left_by, one_step_events, within_limits
from atdp_cli.hardening.checkpoint import SavedState, latest_state, newest_cursor
from atdp_cli.hardening.run_spec import RunSpec
from atdp_cli.hardening.workspace import Workspace
from atdp_cli.privacy.journal import mend_journal
from atdp_cli.privacy.ledger import LedgerEvent, SubsampledGaussian
from atdp_cli.training.clip.select import out_of_memory
from atdp_cli.training.plan import Plan
from atdp_cli.training.state import StageResult


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """From where a run starts or resumes.

    Attributes:
        state: The checkpoint; None where it starts at the beginning.
        end: Where it has to end, as `allowance` has it; None where it may go to its end.
    """

    state: SavedState | None = None
    end: Cursor | None = None


def resume_point(spec: RunSpec, work: Workspace, notify: Notify) -> ResumePoint:
    """From where an interrupted run resumes.

    Steps after the checkpoint are repeated, with fresh samples and noise, and are spent again. Where that would pass a
    limit of ε, the run has to end before.

    Raises:
        InputError: The journal or the checkpoints cannot be used.
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
    cursor, results = (Cursor(), ()) if state is None else (state.cursor, state.results)
    repeated = steps_of(spent) - _steps_before(plan, cursor, results)
    notify(Resumed(stage=cursor.stage + 1, stages=len(plan.stages), step=cursor.step, again=repeated))
    return ResumePoint(state=state, end=_end(spec, cursor, spent, notify))


def steps_of(events: Sequence[LedgerEvent]) -> int:
    """Steps with noise in all the events together."""
    return sum(event.steps for event in events if isinstance(event, SubsampledGaussian))


def _steps_before(plan: Plan, cursor: Cursor, results: Sequence[StageResult] = ()) -> int:
    """Steps with noise that an uninterrupted run has spent before a position.

    Args:
        results: Of the stages before it, for where one ended early.
    """
    ended = [result.ended_after for result in results] + [None] * len(plan.stages)
    steps = [steps_of(stage.events) for stage in plan.stages]
    done = sum(
        planned if last is None else min(last, planned)
        for planned, last in zip(steps[: cursor.stage], ended, strict=False)
    )
    return done + sum(min(cursor.step, planned) for planned in steps[cursor.stage : cursor.stage + 1])


def _end(spec: RunSpec, cursor: Cursor, spent: Sequence[LedgerEvent], notify: Notify) -> Cursor | None:
    limits, plan = spec.limits, spec.plan
    if not limits:
        return None
    within = within_limits(plan, target_epsilon=spec.target_epsilon, max_epsilon=spec.max_epsilon)
    end = allowance(plan, cursor, spent, within)
    if end is None:
        return None
    if not within(events_left_by(plan, cursor, spent, end)):
        raise BudgetError(
            f"The interrupted run has spent more than {limits} allows.",
            "Start again with --force: nothing of it was released.",
        )
    stage = plan.stages[end.stage]
    if not _steps_before(plan, end):
        raise BudgetError(
            f"What the interrupted run has spent leaves no step with noise within {limits}.",
            "Start again with --force: nothing of it was released.",
        )
    steps = stage.steps
    notify(
        ChoiceWarning(
            what="budget",
            reason=f"{limits} now ends the run after step {end.step} of {steps} of stage {stage.stage.name}, as "
            "repeated steps are spent again",
        )
    )
    return end


def ended_early(spec: RunSpec, results: Sequence[StageResult]) -> str | None:
    """Why a run ended before its plan, in a sentence or two; None if it did not."""
    ended = [
        (stage, result.ended_after)
        for stage, result in zip(spec.plan.stages, results, strict=True)
        if result.ended_after is not None
    ]
    if not ended:
        return None
    stage, after = ended[0]
    idle = [stage.stage.name for stage, taken in ended if not taken]
    steps = stage.steps
    reached = f"after step {after} of {steps} of stage {stage.stage.name}" if after else f"before stage {idle[0]}"
    untouched = f" It took no step of {', '.join(idle)}." if idle else ""
    return (
        f"The run ended {reached}: it had been interrupted, repeated steps were spent again, and {spec.limits} allows "
        f"no more.{untouched}"
    )


def missing_steps(plan: Plan, results: Sequence[StageResult]) -> int:
    """Planned steps with noise that were not spent."""
    taken = _steps_before(plan, Cursor(stage=len(plan.stages)), results)
    return sum(steps_of(stage.events) for stage in plan.stages) - taken


@contextmanager
def resume_hint(spec: RunSpec, work: Workspace) -> Iterator[None]:
    """Adds to errors that leave the block the run's position and the command that resumes it.

    Raises:
        AtdpError: As it was raised within, or for a full disk, memory that ran out, an interrupt.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        expected = _expected(error, work)
        if expected is None:
            raise
        hinted = _with_hint(expected, spec, work)
        if hinted is error:
            raise
        raise hinted from error


def _with_hint(error: AtdpError, spec: RunSpec, work: Workspace) -> AtdpError:
    """The error with the way to resume the run; unchanged if there is nothing to resume."""
    if isinstance(error, ConformanceError):  # it would end the same, and nothing of it can be released
        return error
    where = _where(spec, work)
    if where is None and work.session == 0:
        return error
    kept = f"{work.root} keeps it {where}." if where else f"{work.root} keeps what was spent, and no state."
    hint = f"{kept} Resume with: {resume_command(spec)}"
    if isinstance(error, InterruptedRunError):
        return InterruptedRunError(error.problem, hint)
    if isinstance(error, DivergedError):  # it would most likely diverge again
        hint = (
            f"{work.root} keeps the run {where or 'without a state'}; --resume continues it at the same rate and most "
            "likely ends the same, --force starts anew."
        )
    return type(error)(error.problem, f"{error.remedy} {hint}")


def _expected(error: BaseException, work: Workspace) -> AtdpError | None:
    """The error as one that a user can act on; None for other errors."""
    match error:
        case AtdpError():
            return error
        case KeyboardInterrupt():
            return InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")
        case OSError() if not isinstance(error, BrokenPipeError):
            return _io_error(work, str(error.strerror))
        case SafetensorError():
            return _io_error(work, "weights")
        case MemoryError() | RuntimeError() if out_of_memory(error):
            return RunError("Memory ran out.", "Try a smaller run.max-batch-tokens.")
    return None


def _io_error(work: Workspace, reason: str) -> RunError:
    return RunError(f"Writing or reading in {work.root} failed ({reason}).", "Check free space and permissions.")


def resume_command(spec: RunSpec) -> str:
    """The command that resumes the run."""
    if not spec.command:
        return "the same, with --resume"
    return " ".join(spec.command if "--resume" in spec.command else (*spec.command, "--resume"))


def _where(spec: RunSpec, work: Workspace) -> str | None:
    cursor = newest_cursor(work.root)
    if cursor is None:
        return None
    stages = spec.plan.stages
    if cursor.stage >= len(stages):
        return "as it was after its last step"
    stage = stages[cursor.stage]
    if cursor.step == 0:
        return f"as it was before stage {stage.stage.name}"
    return f"as it was after step {cursor.step} of {stage.steps} of stage {stage.stage.name}"
