"""The place where an interrupted run resumes: what it has spent, what was saved, and how far it may go."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from transformers import PreTrainedModel

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
from atdp_cli.hardening.budget import Cursor, EpsilonLimits, allowance, events_left_by, one_step_events, within_limits
from atdp_cli.hardening.checkpoint import SavedState, latest_state, load_tensors, read_tensors
from atdp_cli.hardening.fingerprint import Fingerprint, first_difference
from atdp_cli.hardening.progress import Progress, put_tensors
from atdp_cli.hardening.workspace import Workspace, checkpoint_numbers
from atdp_cli.privacy.journal import mend_journal
from atdp_cli.privacy.ledger import LedgerEvent, SubsampledGaussian
from atdp_cli.training.clip.select import out_of_memory
from atdp_cli.training.parallel.collectives import all_reduce_any, broadcast_, broadcast_bytes
from atdp_cli.training.parallel.ranks import Ranks
from atdp_cli.training.plan import Plan
from atdp_cli.training.state import StageResult


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """The place where a run starts or resumes.

    Attributes:
        state: The checkpoint; None where it starts at the beginning.
        end: Where it has to end, as `allowance` has it; None where it may go to its end.
    """

    state: SavedState | None = None
    end: Cursor | None = None


def resume_point(plan: Plan, limits: EpsilonLimits, work: Workspace, notify: Notify) -> ResumePoint:
    """Find where an interrupted run resumes.

    Steps after the checkpoint are repeated, with fresh samples and noise, and are spent again. Where that would pass a
    limit of ε, the run has to end before.

    Raises:
        InputError: The journal or the checkpoints cannot be used.
        BudgetError: No step with noise would be left to take.
    """
    spent = mend_journal(work.journal, one_step_events(plan), plan.ledger.delta)
    state = latest_state(work.root, notify)
    if state is not None and (not work.journal.exists() or work.journal.stat().st_size < state.document.journal):
        raise InputError(
            f"{work.journal} is shorter than when {state.folder.name} was saved, so it is not known what was spent.",
            "Restore it, or start again with --force.",
        )
    progress = Progress() if state is None else state.document.progress
    cursor = progress.cursor
    repeated = steps_of(spent) - _steps_before(plan, cursor, [result for result, _ in progress.results])
    notify(Resumed(stage=cursor.stage + 1, stages=len(plan.stages), step=cursor.step, again=repeated))
    return ResumePoint(state=state, end=_end(plan, limits, cursor, spent, notify))


class RunState(BaseModel):
    """The place where a run starts or resumes, as every process needs it.

    Attributes:
        progress: What is done.
        end: Where it has to end, as `allowance` has it; None where it may go to its end.
        session: How often it was interrupted before.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, ser_json_inf_nan="constants")

    progress: Progress
    end: Cursor | None
    session: int


def check_same_run(ranks: Ranks, fingerprint: Fingerprint) -> None:
    """Refuse to train if the processes were given different runs.

    Raises:
        RunError: Names the first thing in which this process differs from the first.
    """
    if ranks.size == 1:
        return
    first = json.loads(broadcast_bytes(ranks, json.dumps(dict(fingerprint)).encode()))
    difference = first_difference(first, fingerprint)
    (differs,) = all_reduce_any(ranks, (difference is not None,))
    if difference is not None:
        raise RunError(
            f"Process {ranks.rank} was given another run than process 0: {difference}.", "Give all the same."
        )
    if differs:
        raise RunError("Another process was given another run than process 0.", "Give all the same.")


def restore_run(ranks: Ranks, resume_from: ResumePoint, session: int, model: PreTrainedModel) -> RunState:
    """The state from which a run starts or resumes, its parameters in the model: in every process, as the first has it.

    Args:
        resume_from, session: Of the first process; what the others pass does not count.

    Raises:
        InputError: A file of the checkpoint cannot be read any more, or is of another model.
    """
    saved = resume_from.state
    tensors = {} if saved is None else read_tensors(saved)
    progress = Progress() if saved is None else saved.document.progress
    state = RunState(progress=progress, end=resume_from.end, session=session)
    kinds = {name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)] for name, tensor in tensors.items()}
    state = RunState.model_validate_json(broadcast_bytes(ranks, state.model_dump_json().encode()))
    kinds = json.loads(broadcast_bytes(ranks, json.dumps(kinds).encode()))
    if not ranks.first:
        tensors = {name: torch.empty(shape, dtype=getattr(torch, dtype)) for name, (dtype, shape) in kinds.items()}
    broadcast_(ranks, list(tensors.values()))
    load_tensors(model, tensors)
    return state.model_copy(update={"progress": put_tensors(state.progress, tensors)})


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


def _end(
    plan: Plan, limits: EpsilonLimits, cursor: Cursor, spent: Sequence[LedgerEvent], notify: Notify
) -> Cursor | None:
    if not limits.words:
        return None
    within = within_limits(plan, limits)
    end = allowance(plan, cursor, spent, within)
    if end is None:
        return None
    if not within(events_left_by(plan, cursor, spent, end)):
        raise BudgetError(
            f"The interrupted run has spent more than {limits.words} allows.",
            "Start again with --force: nothing of it was released.",
        )
    stage = plan.stages[end.stage]
    if not _steps_before(plan, end):
        raise BudgetError(
            f"What the interrupted run has spent leaves no step with noise within {limits.words}.",
            "Start again with --force: nothing of it was released.",
        )
    steps = stage.steps
    notify(
        ChoiceWarning(
            what="budget",
            reason=f"{limits.words} now ends the run after step {end.step} of {steps} of stage {stage.stage.name}, as "
            "repeated steps are spent again",
        )
    )
    return end


def ended_early(plan: Plan, limits: EpsilonLimits, results: Sequence[StageResult]) -> str | None:
    """Why a run ended before its plan, in a sentence or two; None if it did not."""
    ended = [
        (stage, result.ended_after)
        for stage, result in zip(plan.stages, results, strict=True)
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
        f"The run ended {reached}: it had been interrupted, repeated steps were spent again, and {limits.words} allows "
        f"no more.{untouched}"
    )


def missing_steps(plan: Plan, results: Sequence[StageResult]) -> int:
    """Planned steps with noise that were not spent."""
    taken = _steps_before(plan, Cursor(stage=len(plan.stages)), results)
    return sum(steps_of(stage.events) for stage in plan.stages) - taken


@contextmanager
def resume_hint(work: Workspace, command: Sequence[str]) -> Iterator[None]:
    """Add to errors that leave the block what is left of the run, and the command that resumes it.

    Args:
        command: The command line as it was given; empty where the run was not started by one.

    Raises:
        AtdpError: As it was raised within, or for a full disk, memory that ran out, an interrupt.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        expected = _expected(error, work)
        if expected is None:
            raise
        hinted = _with_hint(expected, work, command)
        if hinted is error:
            raise
        raise hinted from error


def _with_hint(error: AtdpError, work: Workspace, command: Sequence[str]) -> AtdpError:
    """The error with the way to resume the run; unchanged if there is nothing to resume."""
    saved = bool(checkpoint_numbers(work.root))
    # A conformance error would come again, and nothing of the run can be released.
    if isinstance(error, ConformanceError) or not (saved or work.session):
        return error
    kept = f"{work.root} keeps {'its last state' if saved else 'what was spent, and no state'}."
    again = command if "--resume" in command else (*command, "--resume")
    hint = f"{kept} Resume with: {' '.join(again) if command else 'the same, with --resume'}"
    if isinstance(error, InterruptedRunError):
        return InterruptedRunError(error.problem, hint)
    if isinstance(error, DivergedError):  # it would most likely diverge again
        hint = f"{kept} --resume continues at the same rate and most likely ends the same; --force starts anew."
    return type(error)(error.problem, f"{error.remedy} {hint}")


def _expected(error: BaseException, work: Workspace) -> AtdpError | None:
    """The error as one that a user can act on; None for other errors."""
    match error:
        case AtdpError():
            return error
        case KeyboardInterrupt():
            return InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")
        case OSError() | SafetensorError() if not isinstance(error, BrokenPipeError):
            reason = error.strerror if isinstance(error, OSError) else "weights"
            return RunError(
                f"Writing or reading in {work.root} failed ({reason}).", "Check free space and permissions."
            )
        case MemoryError() | RuntimeError() if out_of_memory(error):
            return RunError("Memory ran out.", "Try a smaller run.max-batch-tokens.")
    return None
