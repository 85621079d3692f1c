"""`harden` and `plan` as functions. What can be refused without a model is refused before torch is loaded."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.events import AlreadyFinished, Notify, ignore
from atdp_cli.files.private import PARTIAL, PRIVATE, beside
from atdp_cli.hardening.fingerprint import Fingerprint, fingerprint
from atdp_cli.hardening.plan import Planned, plan_request
from atdp_cli.hardening.request import HardenRequest, settle
from atdp_cli.hardening.summary import HardenPlan, HardenSummary, plan_summary, result_summary
from atdp_cli.hardening.workspace import check_output, completed_run
from atdp_cli.reporting.write import read_private
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks

Show = Callable[[HardenPlan], object]
"""Receives the plan; what it returns is not used."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The inputs that a surrounding program adds to a run.

    Attributes:
        ranks: Which of several processes this one is.
        command: The command line as it was given, for the private report.
        command_without_paths: The same with nothing in it that names a file or is text of the user's own.
        stop_signal: Requests the run to stop while it trains; it then ends after the step, with its state saved.
        planned: Receives the plan before a model is loaded.
        measured: Receives it again with what it needs.
        sampled: Receives, before anything is trained, records as they are flagged. It must not keep them.
    """

    ranks: Ranks = SINGLE_PROCESS
    command: tuple[str, ...] = ()
    command_without_paths: tuple[str, ...] = ()
    stop_signal: Callable[[], AbstractContextManager[Callable[[], bool]]] = lambda: nullcontext(lambda: False)
    planned: Show = lambda _: None
    measured: Show = lambda _: None
    sampled: Callable[[Planned, Sequence[FlaggedRecord]], object] = lambda *_: None


LIBRARY = Caller()
"""A call from Python."""


def harden(request: HardenRequest, notify: Notify = ignore) -> HardenSummary:
    """Harden a model on its corpus, as `atdp harden` does, and write OUT/ and OUT.private/.

    Args:
        notify: Called with each event of progress.

    Returns:
        What the command prints with --json.

    Raises:
        UsageError: Options contradict each other, or the output exists.
        InputError: A file or a model cannot be used.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
        RunError: The run did not complete.
    """
    result = run_harden(request, notify, LIBRARY)
    if result is None:
        raise ValueError("only a process beside others has no result")
    return result


def plan(request: HardenRequest, notify: Notify = ignore, caller: Caller = LIBRARY) -> HardenPlan:
    """Plan what `harden` would do with the same request, with its ε and memory needs. Writes nothing in its folders.

    What `harden` would refuse before its first step is refused here.

    Args:
        notify: Called with each event of progress.

    Raises:
        UsageError: Options contradict each other.
        InputError: A file or a model cannot be used.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
        RunError: The disk is too small.
    """
    planned = plan_request(settle(request, caller.ranks, caller.command, caller.command_without_paths))
    _check_and_show(planned, caller)

    from atdp_cli.hardening.preflight import check_room, load_and_measure, rehearse_output

    model, measured, sample = load_and_measure(planned, notify, dry_run=True)
    settled = planned.request
    check_room(settled, model, beside(settled.output, PARTIAL))
    with TemporaryDirectory(prefix="atdp-") as folder:
        rehearse_output(model.checkpoint, Path(folder), settled.model, merge=settled.merge_adapter)
    caller.measured(measured)
    caller.sampled(planned, sample)
    return measured


def run_harden(request: HardenRequest, notify: Notify, caller: Caller) -> HardenSummary | None:
    """`harden` for a surrounding program. None in all processes but the first."""
    planned = plan_request(settle(request, caller.ranks, caller.command, caller.command_without_paths))
    opened = open_run(planned, caller)
    if opened is None or isinstance(opened, HardenSummary):
        if opened is not None:
            notify(AlreadyFinished(output=opened.output))
        return opened

    from atdp_cli.hardening.preflight import load_and_measure
    from atdp_cli.hardening.train import harden_worker, run_plan

    model, measured, sample = load_and_measure(planned, notify, dry_run=False)
    caller.measured(measured)
    caller.sampled(planned, sample)
    if not caller.ranks.first:
        harden_worker(planned, opened, model, caller.stop_signal)
        return None
    return run_plan(planned, opened, model, notify, caller.stop_signal)


def _check_and_show(planned: Planned, caller: Caller) -> None:
    """Show the plan of a run whose folders are free, before its start is hashed and torch is loaded: they take long."""
    request = planned.request
    if request.ranks.first:
        check_output(request.output, force=request.force, resume=request.resume)
    caller.planned(plan_summary(planned))


def open_run(planned: Planned, caller: Caller = LIBRARY) -> Fingerprint | HardenSummary | None:
    """Show the plan of a run that can begin, and return its fingerprint. Loads no torch unless it resumes.

    Returns:
        Where the run to resume is over already, its result; None in its place in all processes but the first.

    Raises:
        UsageError: Something is in the way, or another run is at work there.
        InputError: A file cannot be read.
    """
    request = planned.request
    if not request.resume:
        _check_and_show(planned, caller)
    own = fingerprint(planned)
    if request.resume:
        from atdp_cli.training.parallel.collectives import all_reduce_any

        done = completed_run(request.output, own) if request.ranks.first else None
        (over,) = all_reduce_any(request.ranks, (done is not None,))
        if over:
            if done is None:
                return None
            return result_summary(request.output, read_private(beside(request.output, PRIVATE)), steps=done.steps)
        _check_and_show(planned, caller)
    return own
