"""People's review while a run trains: a queue before each epoch, and the term lists read anew."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from atdp_cli.corpus.split import Split
from atdp_cli.detection.detector import Detector, options_given, run_detector
from atdp_cli.detection.review.queue import Header, writable, write_queue
from atdp_cli.detection.review.run import lists_beside
from atdp_cli.events import Notify, ReviewQueued, ignore
from atdp_cli.files.atomic_write import real_path
from atdp_cli.hardening.data import EpochData, RunData, training_records
from atdp_cli.hardening.encode import Windows, encode, flag
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.replacement.decoys import Choose
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
