"""`atdp detect` as a function, and the passes over a corpus that it shares with `atdp redact`."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from atdp_cli.corpus.record import Record, select_records
from atdp_cli.corpus.segments import Selection
from atdp_cli.corpus.spans import Tier, at_tier, merge
from atdp_cli.detection.crosscheck.request import check_crosscheck
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.detector import (
    Detector,
    check_detector,
    detector_files,
    detector_pipeline,
    make_detector,
    options_given,
    run_detector,
)
from atdp_cli.detection.options import CorpusRequest, ReadingOptions
from atdp_cli.detection.results import CorpusCounts, CrosscheckCounts, DetectionSummary
from atdp_cli.detection.review.queue import Header, writable, write_queue
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.detection.span_file import spans_line
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.files.atomic_write import atomic_write, check_apart, check_new, real_path
from atdp_cli.files.corpus_file import STANDARD_INPUT, STANDARD_OUTPUT, OnError, is_rereadable, is_stream, raise_error
from atdp_cli.files.documents import copy_fields
from atdp_cli.files.private import private_folder
from atdp_cli.settings import OUTPUT, Option, named_paths

REVIEW = "Review"


@dataclass(frozen=True, kw_only=True)
class CorpusSource(Selection):
    """A corpus and how to read it.

    Attributes:
        skip_bad: Count lines, objects and rows that cannot be read, and skip them, in place of an error.
    """

    path: Path
    skip_bad: bool = False


def corpus_source(options: ReadingOptions, path: Path) -> CorpusSource:
    """A corpus as the options say."""
    return CorpusSource(
        path=path,
        unit=options.privacy_unit,
        text_field=options.text_field,
        id_field=options.id_field,
        turns=options.turns,
        skip_bad=options.skip_bad,
    )


class DetectRequest(CorpusRequest):
    """What `detect` is asked for."""

    output: Annotated[Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"), writes=True)] = None
    """Spans file. Default, and -: standard output."""

    review: Annotated[Path | None, Option(REVIEW, main=True, writes=True)] = None
    """Also draw sentences for people to review, spans masked, and write them to this file for atdp review."""

    review_share: Annotated[float, Field(gt=0, le=1), Option(flag=False)] = 0.01
    """The share of the sentences to draw, half of them flagged."""


Write = Callable[[str], object]
"""Takes one line of output, its ending included; what it returns is not used."""


def discard(line: str) -> None:
    """Write nothing."""


def detect(request: DetectRequest, notify: Notify = ignore, write: Write = discard) -> DetectionSummary:
    """Find what is sensitive in a corpus: one line of JSON for each record, and a summary.

    Args:
        request: What to read, and how.
        notify: Called with how many records are done.
        write: Takes the lines of spans where no file does.

    Raises:
        UsageError: Options contradict each other, or a file is there already.
        InputError: The corpus, a list or the pipeline cannot be used.
    """
    if request.review is None and "review_share" in request.model_fields_set:
        raise UsageError("run.review-share goes with --review.", "Name the queue to write, or leave it out.")
    corpus = corpus_source(request, request.corpus)
    detector = make_detector(request, request.corpus, run_on=request.run_on)
    read, named = named_paths(request)
    check_apart((*read, *detector_files(detector)), named)
    output = None if request.output == STANDARD_OUTPUT else request.output
    for path in filter(None, (output, request.review)):
        check_new(path, force=request.force)
    check_crosscheck(detector.crosscheck, queue=request.review is not None)
    counts, queued = no_counts(detector), None
    records = select_records(corpus.path, corpus, count_skipped(corpus, counts))
    with nullcontext() if output is None else atomic_write(output, replace=request.force) as stream:
        write_line = write if stream is None else lambda line: stream.write(line.encode())
        written = _written(run_over(records, corpus, detector, notify, counts), detector.tier, write_line, counts)
        if request.review is None:
            deque(written, maxlen=0)
        else:
            header = queue_header(corpus, detector, request.review_share)
            queued = write_queue(request.review, written, header, random.SystemRandom())
    return copy_fields(
        DetectionSummary,
        counts,
        tier=detector.tier.value,
        sensitive_share=counts.sensitive_tokens / counts.tokens if counts.tokens else 0.0,
        flagged=counts.flagged(),
        review=queued,
    )


def _written(detections: Iterable[Detection], tier: Tier, write: Write, counts: CorpusCounts) -> Iterator[Detection]:
    """The detections as they are, each counted and written on its way."""
    for detection in detections:
        spans = merge(at_tier(detection.spans, tier))
        counts.tokens += len(detection.tokens)
        counts.sensitive_tokens += detection.sensitive_tokens(tier)
        counts.add(detection.record.text, spans)
        write(spans_line(detection.record.id, spans) + "\n")
        yield detection


def queue_header(corpus: CorpusSource, detector: Detector, rate: float) -> Header:
    """Describe, in a queue's first line, what it was drawn from."""
    return Header(
        corpora=(writable(str(STANDARD_INPUT if is_stream(corpus.path) else real_path(corpus.path))),),
        unit=corpus.unit,
        text_field=corpus.text_field,
        turns=None if corpus.turns is None else writable(corpus.turns),
        id_field=corpus.id_field,
        skip_bad=corpus.skip_bad,
        tier=detector.tier,
        review_share=rate,
        options={name: writable(value) for name, value in options_given(detector).items()},
    )


def no_counts(detector: Detector) -> CorpusCounts:
    """Counts before the first record."""
    return CorpusCounts(crosscheck=None if detector.crosscheck is None else CrosscheckCounts())


def run_over(
    records: Iterator[Record], corpus: CorpusSource, detector: Detector, notify: Notify, counts: CorpusCounts
) -> Iterator[Detection]:
    """Detect what is sensitive in each record of a corpus."""
    check_detector(detector)
    total = _count(corpus)
    notify(RecordsRead(task="detect", done=0, total=total))
    return run_detector(
        records,
        detector,
        detector_pipeline(detector, load_pipeline(detector.pipeline)),
        notify,
        total=total,
        folder=private_folder(corpus.path),
        counts=counts.crosscheck,
    )


def _count(corpus: CorpusSource) -> int | None:
    """How many records there are, so that people see how long the rest will take; None where reading twice fails.

    Reading is some hundred times as fast as detecting, and finds what cannot be read before that begins.
    """
    if not is_rereadable(corpus.path):
        return None
    return sum(1 for _ in select_records(corpus.path, corpus, (lambda _: None) if corpus.skip_bad else raise_error))


def count_skipped(corpus: CorpusSource, counts: CorpusCounts) -> OnError:
    """What is done with a line or row that cannot be read."""
    return counts.skip if corpus.skip_bad else raise_error
