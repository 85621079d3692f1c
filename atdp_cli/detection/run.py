"""`atdp detect` as a function, and the passes over a corpus that it shares with `atdp redact`."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from atdp_cli.corpus.record import Record, select_records
from atdp_cli.corpus.segments import Selection, parse_shard
from atdp_cli.corpus.spans import Tier, at_tier, merge
from atdp_cli.detection.crosscheck.check import Counts
from atdp_cli.detection.crosscheck.request import check_crosscheck
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.detector import (
    Detector,
    check_detector,
    detector_pipeline,
    make_detector,
    options_given,
    run_detector,
)
from atdp_cli.detection.options import (
    DetectionOptions,
    ExecutorOptions,
    ReadingOptions,
    ReplacingOptions,
    WholeReadingOptions,
)
from atdp_cli.detection.results import CrosscheckCounts, DetectionSummary, FlaggedSummary, QueueSummary
from atdp_cli.detection.review.queue import Header, Queued, writable, write_queue
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.detection.span_file import spans_line
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.files.atomic_write import atomic_write, check_new, real_path, same_file
from atdp_cli.files.corpus_file import STANDARD_INPUT, STANDARD_OUTPUT, OnError, is_rereadable, is_stream, raise_error
from atdp_cli.files.private import private_folder
from atdp_cli.settings import OUTPUT, Option

REVIEW = "Review"


@dataclass(frozen=True, kw_only=True)
class CorpusSource(Selection):
    """A corpus and how to read it; counts are of its `shard` alone, and ids those of the whole.

    Attributes:
        skip_bad: Count lines, objects and rows that cannot be read, and skip them, in place of an error.
    """

    path: Path
    skip_bad: bool = False


def corpus_source(options: WholeReadingOptions, path: Path) -> CorpusSource:
    """A corpus as the options say."""
    part = options.shard if isinstance(options, ReadingOptions) else None
    return CorpusSource(
        path=path,
        unit=options.privacy_unit,
        text_field=options.text_field,
        id_field=options.id_field,
        turns=options.turns,
        skip_bad=options.skip_bad,
        shard=None if part is None else parse_shard(part),
    )


class DetectOptions(DetectionOptions, ExecutorOptions, ReadingOptions, ReplacingOptions):
    """The options of `atdp detect`."""

    output: Annotated[Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"))] = None
    """Spans file. Default, and -: standard output."""

    review: Annotated[Path | None, Option(REVIEW, main=True)] = None
    """Also draw sentences for people to review, spans masked, and write them to this file for atdp review."""

    review_share: Annotated[float, Field(gt=0, le=1), Option(flag=False)] = 0.01
    """The share of the sentences to draw, half of them flagged."""


class DetectRequest(DetectOptions):
    """What `detect` is asked for."""

    corpus: Path


@dataclass(kw_only=True)
class DetectionCounts:
    """Counts over a corpus; tokens are spaCy's.

    Attributes:
        flagged: The spans, merged.
        crosscheck: None where nobody was asked.
    """

    records: int = 0
    skipped: int = 0
    tokens: int = 0
    sensitive_tokens: int = 0
    flagged: FlaggedSummary = field(default_factory=FlaggedSummary)
    queued: Queued | None = None
    crosscheck: Counts | None = None

    def crosscheck_counts(self) -> CrosscheckCounts | None:
        """How the cross-check went, as `--json` has it."""
        return None if self.crosscheck is None else CrosscheckCounts(**asdict(self.crosscheck))

    @property
    def sensitive_share(self) -> float:
        """Sensitive tokens over all tokens, 0 for an empty corpus."""
        return self.sensitive_tokens / self.tokens if self.tokens else 0.0


Write = Callable[[str], object]
"""Takes one line of output, its ending included; what it returns is not used."""


def discard(line: str) -> None:
    """Spans that nobody asked for."""


def detect(
    request: DetectRequest, notify: Notify = ignore, write: Write = discard
) -> tuple[DetectionSummary, DetectionCounts]:
    """Find what is sensitive in a corpus.

    Args:
        request: What to read, and how.
        notify: Called with how many records are done.
        write: Takes the lines of spans where no file does.

    Returns:
        What `--json` prints, and the counts behind it.

    Raises:
        UsageError: Options contradict each other, or a file is there already.
        InputError: The corpus, a list or the pipeline cannot be used.
    """
    if request.review is None and "review_share" in request.model_fields_set:
        raise UsageError("run.review-share goes with --review.", "Name the queue to write, or leave it out.")
    source, detector = (
        corpus_source(request, request.corpus),
        make_detector(request, request.corpus, run_on=request.run_on),
    )
    if request.output in (None, STANDARD_OUTPUT):
        counts = detect_corpus(source, detector, write, notify, request)
    else:
        counts = _detect_to_file(source, request.output, detector, notify, request)
    queued = counts.queued
    summary = DetectionSummary(
        tier=detector.tier.value,
        records=counts.records,
        skipped=counts.skipped,
        tokens=counts.tokens,
        sensitive_tokens=counts.sensitive_tokens,
        sensitive_share=counts.sensitive_share,
        by_label=dict(counts.flagged.by_label.most_common()),
        shapes=counts.flagged.shapes,
        crosscheck=counts.crosscheck_counts(),
        review=None if queued is None else QueueSummary(queue=str(request.review), **asdict(queued)),
    )
    return summary, counts


def _detect_to_file(
    corpus: CorpusSource, output: Path, detector: Detector, notify: Notify, request: DetectRequest
) -> DetectionCounts:
    """Into a file that appears whole or not at all."""
    check_new(output, force=request.force)
    if request.review is not None and same_file(request.review, output):
        raise UsageError("--review and --output name the same file.", "Write the queue to another file.")
    with atomic_write(output, replace=request.force) as stream:
        return detect_corpus(corpus, detector, lambda line: stream.write(line.encode()), notify, request)


def detect_corpus(
    corpus: CorpusSource, detector: Detector, write: Write, notify: Notify, request: DetectRequest | None = None
) -> DetectionCounts:
    """Find the spans of every record, hand each record's JSON line to `write`, and count.

    Args:
        corpus: What to read.
        detector: How to look.
        write: Takes the lines.
        notify: Called with how many records are done.
        request: Whether to write a queue as well, and of which sentences.

    Raises:
        UsageError: The queue exists, or is the corpus itself; a shard with a queue.
        InputError: The corpus, a list or the pipeline cannot be used.
    """
    queue = None if request is None else request.review
    if queue is not None and request is not None:
        _check_queue(queue, corpus, force=request.force)
    check_crosscheck(detector.crosscheck, queue=queue is not None)
    counts = no_counts(detector)
    records = select_records(corpus.path, corpus, count_skipped(corpus, counts))
    detections = run_over(records, corpus, detector, notify, counts)
    written = _written(detections, detector.tier, write, counts)
    if queue is None or request is None:
        deque(written, maxlen=0)
    else:
        header = queue_header(corpus, detector, request.review_share)
        counts.queued = write_queue(queue, written, header, random.SystemRandom())
    return counts


def _written(detections: Iterable[Detection], tier: Tier, write: Write, counts: DetectionCounts) -> Iterator[Detection]:
    """The detections as they are, each counted and written on its way."""
    for detection in detections:
        spans = merge(at_tier(detection.spans, tier))
        counts.records += 1
        counts.tokens += len(detection.tokens)
        counts.sensitive_tokens += detection.sensitive_tokens(tier)
        counts.flagged.add(detection.record.text, spans)
        write(spans_line(detection.record.id, spans) + "\n")
        yield detection


def queue_header(corpus: CorpusSource, detector: Detector, rate: float) -> Header:
    """What a queue says of where it comes from."""
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


def _check_queue(queue: Path, corpus: CorpusSource, *, force: bool) -> None:
    if corpus.shard is not None:
        raise UsageError(
            "--review draws from the whole corpus, and --shard reads a part of it.",
            "Draw the queue by a run without --shard.",
        )
    check_new(queue, force=force)
    if same_file(queue, corpus.path):
        raise UsageError("--review names the corpus itself.", "Write the queue to another file.")


def no_counts(detector: Detector) -> DetectionCounts:
    """Counts before the first record."""
    return DetectionCounts(crosscheck=None if detector.crosscheck is None else Counts())


def run_over(
    records: Iterator[Record], corpus: CorpusSource, detector: Detector, notify: Notify, counts: DetectionCounts
) -> Iterator[Detection]:
    """What is sensitive in each record of a corpus."""
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


def count_skipped(corpus: CorpusSource, counts: DetectionCounts) -> OnError:
    """What is done with a line or row that cannot be read."""

    def count(_: InputError) -> None:
        counts.skipped += 1

    return count if corpus.skip_bad else raise_error
