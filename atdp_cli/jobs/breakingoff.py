"""What an error says of a run that can be gone on with, and how."""

from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from atdp_cli.errors import AtdpError, DivergedError, InterruptedRunError, RunError
from atdp_cli.jobs.request import Planned
from atdp_cli.jobs.states import newest_place
from atdp_cli.jobs.workplace import Workplace
from atdp_cli.training.clipping.selection import out_of_memory
from atdp_cli.training.plan import StagePlan


@contextmanager
def saying_how_to_go_on(planned: Planned, work: Workplace) -> Iterator[None]:
    """Errors that leave this are told with where the run stands and the command that goes on with it.

    Raises:
        AtdpError: As it was raised within, or for a full disk, memory that ran out, an interrupt.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        told = _told(error, planned, work)
        if told is None or told is error:
            raise
        raise told from error


def _told(error: BaseException, planned: Planned, work: Workplace) -> AtdpError | None:
    """The error in its place; None where there is nothing to add."""
    way, found = _way_on(planned, work), _expected(error, work)
    if found is None or not way:
        return found
    if isinstance(found, InterruptedRunError):
        return InterruptedRunError(found.problem, way)
    return type(found)(found.problem, f"{found.remedy} {_kept(planned, work) if _hopeless(found) else way}")


def _hopeless(error: AtdpError) -> bool:
    """Whether the same again would end the same."""
    return isinstance(error, DivergedError)


def _expected(error: BaseException, work: Workplace) -> AtdpError | None:
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


def _unwritten(work: Workplace, why: str) -> RunError:
    return RunError(
        f"What belongs into {work.root} could not be written or read ({why}).", "Check free space and permissions."
    )


def _way_on(planned: Planned, work: Workplace) -> str:
    """Where the run stands and how to go on; empty where it begins at its beginning."""
    where = _where(planned, work)
    if where is None and work.session == 0:
        return ""
    kept = f"{work.root} keeps it {where}." if where else f"{work.root} keeps what was spent, and no state."
    return f"{kept} Go on with: {command_on(planned)}"


def _kept(planned: Planned, work: Workplace) -> str:
    """What there is to say where going on has little hope."""
    return (
        f"{work.root} keeps the run {_where(planned, work) or 'without a state'}; --resume goes on from there at the "
        "same rate and most likely ends the same, --force starts anew."
    )


def command_on(planned: Planned) -> str:
    """The command that goes on with the run."""
    given = planned.request.command
    if not given:
        return "the same, with --resume"
    return " ".join(given if "--resume" in given else (*given, "--resume"))


def _where(planned: Planned, work: Workplace) -> str | None:
    at = newest_place(work.root)
    if at is None:
        return None
    stages = planned.plan.stages
    if at.stage >= len(stages):
        return "as it was after its last step"
    stage = stages[at.stage]
    if at.step == 0 or not isinstance(stage, StagePlan):
        return f"as it was before stage {stage.stage.name}"
    return f"as it was after step {at.step} of {stage.steps} of stage {stage.stage.name}"
