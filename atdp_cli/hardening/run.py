"""`harden` and `plan` as functions. What can be refused without a model is refused before torch is loaded."""

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from atdp_cli.corpus.split import Split
from atdp_cli.detection.detector import Detector, options_given, run_detector
from atdp_cli.detection.review.queue import Header, writable, write_queue
from atdp_cli.detection.review.run import lists_beside
from atdp_cli.events import Notify, ReviewQueued, ignore
from atdp_cli.files.atomic_write import real_path
from atdp_cli.hardening.data import EpochData, RunData, training_records
from atdp_cli.hardening.defaults import settle
from atdp_cli.hardening.encode import Windows, encode, flag
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import HardenRequest, SettledRequest
from atdp_cli.hardening.results import HardenPlan, HardenSummary
from atdp_cli.hardening.spec import open_run
from atdp_cli.hardening.summary import plan_summary, result_summary
from atdp_cli.replacement.decoys import Choose
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.plan import StagePlan

REVIEW_FOLDER = "review"


def review_each_epoch(
    request: SettledRequest, split: Split, data: RunData, private_folder: Path, notify: Notify
) -> EpochData | None:
    """The training records before each epoch, as people's term lists flag them; None without --review-each-epoch.

    Every epoch gets a queue of its own in `OUT.private/review/`, a sample of the sentences as they are flagged
    then. `atdp review` writes its lists beside it; those of all queues so far, also of an interrupted run, are added
    to the lists of the run. Training does not wait for anybody.

    Source: the audit of "Adaptive Token-Weighted Differential Privacy for LLMs": 1 % of the sentences an epoch.
    """
    if request.review is None:
        return None
    folder = private_folder / REVIEW_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    corpora = request.data if request.eval_data is None else (*request.data, request.eval_data)
    header = Header(
        corpora=tuple(writable(str(real_path(path))) for path in corpora),
        unit=request.privacy_unit,
        text_field=request.text_field,
        turns=None if request.turns is None else writable(request.turns),
        tier=request.detector.tier,
        review_share=request.review,
        options={name: writable(value) for name, value in options_given(request.detector).items()},
    )
    queues = _written(folder)

    def epoch_data(plan: StagePlan, epoch: int, choose: Choose) -> Sequence[Windows]:
        detector = _with_lists(request.detector, queues)
        detections = tuple(run_detector(split.records, detector, data.pipeline, ignore))
        queue = folder / f"{len(queues) + 1}-{plan.stage.name}-epoch-{epoch}.jsonl"
        queued = write_queue(queue, detections, header, random.SystemRandom())
        queues.append(queue)
        notify(ReviewQueued(queue=str(queue), sentences=queued.flagged + queued.unflagged))
        sources = None
        if split.sources is not None:
            sources = run_detector(split.sources, detector, data.pipeline, ignore)
        flagged = flag(detections, sources, detector.tier)
        records = training_records(flagged, split)
        return encode(records, plan.stage.text, data.encoding, choose, plan.stage.decoy_equality)

    return epoch_data


def _written(folder: Path) -> list[Path]:
    """The review queues of an interrupted run in order. A half-written one is removed."""
    for half in folder.glob(".*.jsonl.*.tmp"):
        half.unlink()
    return sorted(folder.glob("[0-9]*-epoch-*.jsonl"), key=lambda queue: int(queue.name.partition("-")[0]))


def _with_lists(detector: Detector, queues: Sequence[Path]) -> Detector:
    reviewed = [lists_beside(queue) for queue in queues]
    return replace(
        detector,
        allow=(*detector.allow, *(lists.allow for lists in reviewed if lists.allow.is_file())),
        deny=(*detector.deny, *(lists.deny for lists in reviewed if lists.deny.is_file())),
    )


Show = Callable[[HardenPlan], object]
"""Receives the plan; what it returns is not used."""


def _unseen(plan: HardenPlan) -> None:
    """Shows nothing."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """What a surrounding program adds to a run.

    Attributes:
        ranks: Which of several processes this one is.
        command: The command line as it was given, for the private report.
        command_without_paths: The same with nothing in it that names a file or is text of the user's own.
        stop_signal: Requests the run to stop while it trains; it then ends after the step, with its state saved.
        planned: Receives the plan before a model is loaded.
        measured: Receives it again with what it needs.
    """

    ranks: Ranks = SINGLE_PROCESS
    command: tuple[str, ...] = ()
    command_without_paths: tuple[str, ...] = ()
    stop_signal: Callable[[], AbstractContextManager[Callable[[], bool]]] = lambda: nullcontext(lambda: False)
    planned: Show = _unseen
    measured: Show = _unseen


LIBRARY = Caller()
"""A call from Python."""


def harden(request: HardenRequest, notify: Notify = ignore) -> HardenSummary:
    """Harden a model on its corpus, as `atdp harden` does, and write OUT/ and OUT.private/.

    Args:
        notify: Called with each event of progress.

    Returns:
        What the command prints with --json. `failed` says why where perplexity rose above the limit.

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
    """What `harden` would do with the same request, its ε and its memory needs. Writes nothing.

    Args:
        notify: Called with each event of progress.

    Raises:
        UsageError: Options contradict each other.
        InputError: A file or a model cannot be used.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
    """
    planned = plan_request(settle(request, caller.ranks, caller.command, caller.command_without_paths))
    caller.planned(plan_summary(planned))

    from atdp_cli.hardening.preflight import load_and_measure

    _, measured = load_and_measure(planned, notify, dry_run=True)
    caller.measured(measured)
    return measured


def run_harden(request: HardenRequest, notify: Notify, caller: Caller) -> HardenSummary | None:
    """`harden` for a surrounding program. None in all processes but the first."""
    planned = plan_request(settle(request, caller.ranks, caller.command, caller.command_without_paths))
    spec = open_run(planned)  # before torch is loaded

    from atdp_cli.hardening.preflight import load_and_measure
    from atdp_cli.hardening.results import HardenResult
    from atdp_cli.hardening.train import harden_worker, run_plan

    if spec is None:
        return None
    if isinstance(spec, HardenResult):
        return result_summary(planned.request.recipe_name, spec)
    caller.planned(plan_summary(planned))
    model, measured = load_and_measure(planned, notify, dry_run=False)
    caller.measured(measured)
    if not caller.ranks.first:
        harden_worker(planned, spec, model, caller.stop_signal)
        return None
    return result_summary(planned.request.recipe_name, run_plan(planned, spec, model, notify, caller.stop_signal))
