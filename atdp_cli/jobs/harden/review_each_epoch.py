"""People's review while a run trains: a queue before each epoch, and the lists read anew."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from atdp_cli.events import Notify, ReviewQueued, ignore
from atdp_cli.files.atomic_write import real_path
from atdp_cli.jobs.detector import Detector, run_detector
from atdp_cli.jobs.harden.data import encoding_of
from atdp_cli.jobs.harden.encoding import FlaggedRecord, Windows, encode
from atdp_cli.jobs.harden.request import Planned
from atdp_cli.jobs.harden.stages import EpochData
from atdp_cli.jobs.review import lists_beside
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.runs.workspace import Workspace
from atdp_cli.text.detection.scan import load_pipeline
from atdp_cli.text.detection.spans import at_tier
from atdp_cli.text.redaction.decoys import Choose
from atdp_cli.text.review.queue_file import Header, writable, write_queue
from atdp_cli.training.plan import StagePlan

REVIEW_FOLDER = "review"


def review_each_epoch(planned: Planned, checkpoint: Checkpoint, work: Workspace, notify: Notify) -> EpochData | None:
    """The training records as people's lists flag them before each epoch; None unless the run was asked to.

    Every epoch gets a queue of its own in `OUT.private/review/`, a sample of the sentences as they are flagged
    then. `atdp review` writes its lists beside it; those of all queues so far, of a run that was interrupted too, join
    the lists of the run. Training does not wait for anybody.

    Source: the audit of "Adaptive Token-Weighted Differential Privacy for LLMs": 1 % of the sentences an epoch.
    """
    request = planned.request
    if request.review is None:
        return None
    rate = request.review
    folder = work.private / REVIEW_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    pipeline = load_pipeline(request.detector.pipeline)
    encoding = encoding_of(planned, checkpoint)
    header = Header(
        corpora=tuple(writable(str(real_path(path))) for path in _corpora(planned)),
        unit=request.unit,
        text_field=request.text_field,
        tier=request.detector.tier,
        sample=rate,
    )
    queues = _written(folder)

    def reread(plan: StagePlan, epoch: int, choose: Choose) -> Sequence[Windows]:
        detector = _with_lists(request.detector, queues)
        found = tuple(run_detector(planned.split.records, detector, pipeline, ignore))
        queue = folder / f"{len(queues) + 1}-{plan.stage.name}-epoch-{epoch}.jsonl"
        queued = write_queue(queue, found, header, random.SystemRandom())
        queues.append(queue)
        notify(ReviewQueued(queue=str(queue), sentences=queued.flagged + queued.unflagged))
        flagged = [FlaggedRecord(one.record, at_tier(one.spans, detector.tier)) for one in found]
        if planned.split.sources is not None:
            read = run_detector(planned.split.sources, detector, pipeline, ignore)
            sources = [FlaggedRecord(one.record, at_tier(one.spans, detector.tier)) for one in read]
            flagged = [replace(one, source=source) for one, source in zip(flagged, sources, strict=True)]
        training = [one for place, one in enumerate(flagged) if place not in planned.split.held_out]
        return encode(training, plan.stage.text, encoding, choose)

    return reread


def _written(folder: Path) -> list[Path]:
    """The queues of a run that was interrupted, in their order; one that was half written is removed."""
    for half in folder.glob(".*.jsonl.*.tmp"):
        half.unlink()
    return sorted(folder.glob("[0-9]*-epoch-*.jsonl"), key=lambda queue: int(queue.name.partition("-")[0]))


def _corpora(planned: Planned) -> tuple[Path, ...]:
    request = planned.request
    return request.data if request.valid is None else (*request.data, request.valid)


def _with_lists(detector: Detector, queues: Sequence[Path]) -> Detector:
    lists = [lists_beside(queue) for queue in queues]
    return replace(
        detector,
        allow=(*detector.allow, *(one.allow for one in lists if one.allow.is_file())),
        deny=(*detector.deny, *(one.deny for one in lists if one.deny.is_file())),
    )
