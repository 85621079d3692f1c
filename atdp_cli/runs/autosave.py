"""When a run saves its state: every so often, where a release or a stage would be lost, and when it is to stop."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from transformers import PreTrainedModel

from atdp_cli.errors import InterruptedRunError
from atdp_cli.events import FellBack, Notify, StateSaved
from atdp_cli.runs.broadcast import gather_tensors
from atdp_cli.runs.checkpoint import Progress, save_state, state_tensors
from atdp_cli.runs.workspace import Workspace
from atdp_cli.training.distributed.collectives import all_reduce_any
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

StopRequested = Callable[[], bool]
"""Whether somebody has asked the run to stop."""

StopSignal = Callable[[], AbstractContextManager[StopRequested]]
"""As long as its context lasts, whoever asks for a stop is heard, and the run ends after a step."""


def never_stop() -> AbstractContextManager[StopRequested]:
    """The `StopSignal` of a run that nobody asks."""
    return nullcontext(lambda: False)


class Checkpointer(Protocol):
    """Is told where a run stands, and may save it, or end the run."""

    def __call__(self, progress: Callable[[], Progress], *, between: bool) -> None:
        """Take note.

        Args:
            progress: Where the run stands; costs something to ask.
            between: Whether more would be lost than steps: a release, a stage, the whole training.
        """


def no_checkpoint(progress: Callable[[], Progress], *, between: bool) -> None:
    """The `Checkpointer` of a run without states."""


def autosave(
    work: Workspace,
    model: PreTrainedModel,
    parameters: Sequence[str],
    *,
    minutes: float,
    since: Callable[[], float],
    asked: StopRequested,
    notify: Notify,
    ranks: Ranks = SINGLE_PROCESS,
    clock: Callable[[], float] = time.monotonic,
) -> Checkpointer:
    """Saves states in a run's folder.

    A state that cannot be written ends no run: the one before it stays, and the next is tried in its time.

    Args:
        parameters: Names of those that the run may change.
        minutes: Between two states; with 0, one is saved only when the run is to stop.
        since: Seconds that the run has taken.
        asked: Where it says so, the run ends with its state saved.
        ranks: Of several processes the first writes, and all end if one of them is asked.
        clock: In seconds; no jump of the system's time may move it.

    Raises (what it returns):
        InterruptedRunError: The run was asked to stop.
    """
    last = clock()
    interrupted = InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")

    def keep(progress: Callable[[], Progress], *, between: bool) -> None:
        nonlocal last
        due = minutes > 0 and (between or clock() - last >= 60 * minutes)
        stop, due = all_reduce_any(ranks, (asked(), due and ranks.first))
        if not (stop or due):
            return
        found = replace(progress(), seconds=since())
        complete = gather_tensors(ranks, state_tensors(found, model, parameters)) if ranks.sharded else None
        if ranks.first:
            try:
                save_state(work.root, found, model, parameters, journal=work.journal.stat().st_size, complete=complete)
            except OSError as error:
                notify(FellBack(what="state", reason=f"not saved ({error.strerror}); the one before it stays"))
            else:
                notify(StateSaved(stage=found.stage + 1, step=0 if found.underway is None else found.underway.step))
        last = clock()
        if stop:
            raise interrupted

    return keep
