"""When a run saves a checkpoint: at intervals, before a release or stage could be lost, and before it stops."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from transformers import PreTrainedModel

from atdp_cli.errors import InterruptedRunError
from atdp_cli.events import ChoiceWarning, Notify, StateSaved
from atdp_cli.hardening.broadcast import gather_tensors
from atdp_cli.hardening.checkpoint import save_state, state_tensors
from atdp_cli.hardening.progress import Progress
from atdp_cli.hardening.workspace import Workspace
from atdp_cli.training.parallel.collectives import all_reduce_any
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks

StopRequested = Callable[[], bool]
"""Whether the run is requested to stop."""

StopSignal = Callable[[], AbstractContextManager[StopRequested]]
"""While its context is open, requests to stop are noticed, and the run ends after a step."""


def never_stop() -> AbstractContextManager[StopRequested]:
    """The `StopSignal` of a run that nobody stops."""
    return nullcontext(lambda: False)


class Checkpointer(Protocol):
    """Is called whenever a run's progress could be saved; may save it, or end the run."""

    def __call__(self, progress: Callable[[], Progress], *, between: bool) -> None:
        """Save the progress if it is time to.

        Args:
            progress: Computes the progress, at some cost.
            between: Whether more than steps would be lost: a release, a stage, the whole training.
        """


def no_checkpoint(progress: Callable[[], Progress], *, between: bool) -> None:
    """The `Checkpointer` of a run that saves nothing."""


def autosave(
    work: Workspace,
    model: PreTrainedModel,
    parameters: Sequence[str],
    *,
    minutes: float,
    elapsed: Callable[[], float],
    stop_requested: StopRequested,
    notify: Notify,
    ranks: Ranks = SINGLE_PROCESS,
    clock: Callable[[], float] = time.monotonic,
) -> Checkpointer:
    """Saves checkpoints in a run's folder.

    A checkpoint that cannot be written does not end the run: the one before it stays, and the next is tried in time.

    Args:
        parameters: Names of those that the run may change.
        minutes: Between two checkpoints; with 0, one is saved only when the run is to stop.
        elapsed: Seconds that the run has taken.
        stop_requested: Whether the run is to save a checkpoint and end.
        ranks: Of several processes the first writes, and all end if one of them is requested to.
        clock: In seconds; no jump of the system's time may move it.

    Raises (what it returns):
        InterruptedRunError: The run was requested to stop.
    """
    last = clock()

    def checkpointer(progress: Callable[[], Progress], *, between: bool) -> None:
        nonlocal last
        due = minutes > 0 and (between or clock() - last >= 60 * minutes)
        stop, due = all_reduce_any(ranks, (stop_requested(), due and ranks.first))
        if not (stop or due):
            return
        now = replace(progress(), seconds=elapsed())
        complete = gather_tensors(ranks, state_tensors(now, model, parameters)) if ranks.sharded else None
        if ranks.first:
            try:
                save_state(work.root, now, model, parameters, journal=work.journal.stat().st_size, complete=complete)
            except OSError as error:
                notify(ChoiceWarning(what="state", reason=f"not saved ({error.strerror}); the one before it stays"))
            else:
                notify(StateSaved(stage=now.stage + 1, step=now.step))
        last = clock()
        if stop:
            raise InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")

    return checkpointer
