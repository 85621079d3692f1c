"""`atdp detect`: where the sensitive characters of a corpus are."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from atdp_cli.cli.options.generate import Eager
from atdp_cli.cli.options.shared import (
    CorpusArgument,
    ProgressOptions,
)
from atdp_cli.cli.terminal.console import progress, say_skipped, stderr_console, write_json
from atdp_cli.cli.terminal.flagged import show_flagged
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.corpus_file import STANDARD_OUTPUT
from atdp_cli.options import Option, Options
from atdp_cli.text.options import DETECTION, OUTPUT, DetectionOptions, ExecutorOptions, ReadingOptions, ReplacingOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.detect import DetectionCounts, Sampling, Write
    from atdp_cli.report.summary.text import DetectionSummary

REVIEW = "Review"


class SpansFileOptions(Options):
    """Where spans go."""

    output: Annotated[Path | None, Option(OUTPUT, main=True, flags=("--output", "-o"))] = None
    """Spans file. Default, and -: standard output."""


def _write_settings(context: typer.Context, path: Path | None) -> None:
    """The callback of --write-detector: write the file and stop."""
    if path is None or context.resilient_parsing:
        return
    from atdp_cli.text.detection.settings import write_detector

    write_detector(path)
    stderr_console().print(f"Written: {path}. Change it, and give it by --detector.", soft_wrap=True)
    raise typer.Exit


class DetectorFileOptions(Options):
    """What another run can use."""

    write_detector: Annotated[Path | None, Option(DETECTION, metavar="FILE.toml"), Eager(_write_settings)] = None
    """Write a file for --detector, in which every setting is explained and none is changed, and stop."""


class QueueOptions(Options):
    """What people are to review."""

    review: Annotated[Path | None, Option(REVIEW, main=True)] = None
    """Also draw sentences for people to review, spans masked, and write them to this file for atdp review."""

    review_share: Annotated[Annotated[float, Field(gt=0, le=1)] | None, Option(REVIEW)] = None
    """The share of the sentences to draw, half of them flagged. Default: 0.01."""


def detect_command(
    corpus: CorpusArgument,
    detection: DetectionOptions,
    working: ExecutorOptions,
    reading: ReadingOptions,
    printing: ProgressOptions,
    writing: SpansFileOptions,
    replacing: ReplacingOptions,
    queue: QueueOptions,
) -> None:
    """Find what is sensitive. One JSON line a record; positions count code points from 0, the end exclusive.

    With --json the summary goes to standard output, and spans only to -o.
    """
    console = printing.console()
    if printing.as_json and writing.output == STANDARD_OUTPUT:
        raise UsageError("-o - and --json both write to standard output.", "Name a file, or leave --json out.")
    with progress(console, printing.progress) as notify:
        summary, tally = run_detect(
            corpus,
            detection=detection,
            working=working,
            reading=reading,
            writing=writing,
            replacing=replacing,
            queue=queue,
            write=_discard if printing.as_json else _print,
            notify=notify,
        )
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    console.print(
        f"Records: {tally.records:,}. Tokens: {tally.tokens:,}, {tally.sensitive_share:.1%} of them sensitive "
        f"({summary.tier})."
    )
    show_flagged(tally.flagged, console)
    say_skipped(console, tally.skipped)
    if tally.queued is not None:
        console.print(
            f"Sentences to review: {tally.queued.flagged:,} flagged, {tally.queued.unflagged:,} unflagged. "
            f"Next: atdp review {shlex.quote(str(queue.review))}",
            soft_wrap=True,
        )


def run_detect(
    corpus: Path,
    *,
    detection: DetectionOptions,
    working: ExecutorOptions,
    reading: ReadingOptions,
    writing: SpansFileOptions,
    replacing: ReplacingOptions,
    queue: QueueOptions,
    write: "Write",
    notify: Notify,
) -> "tuple[DetectionSummary, DetectionCounts]":
    """Detect as the options say, and show nothing.

    Args:
        write: Takes the lines of spans where no file does.

    Returns:
        What `--json` prints, and the counts behind it.
    """
    from atdp_cli.jobs.detect import corpus_source, detect_corpus, detect_to_file
    from atdp_cli.jobs.detector import make_detector
    from atdp_cli.report.summary.text import CrosscheckCounts, DetectionSummary, QueueSummary

    sampling = _sampling(queue, force=replacing.force)
    source, detector = corpus_source(reading, corpus), make_detector(detection, corpus, run_on=working.run_on)
    output = None if writing.output == STANDARD_OUTPUT else writing.output
    if output is not None:
        tally = detect_to_file(source, output, detector, notify, force=replacing.force, review=sampling)
    else:
        tally = detect_corpus(source, detector, write, notify, sampling)
    summary = DetectionSummary(
        tier=detector.tier.value,
        records=tally.records,
        skipped=tally.skipped,
        tokens=tally.tokens,
        sensitive_tokens=tally.sensitive_tokens,
        sensitive_share=tally.sensitive_share,
        by_label=dict(tally.flagged.by_label.most_common()),
        shapes=tally.flagged.shapes,
        crosscheck=None if tally.crosscheck is None else CrosscheckCounts(**asdict(tally.crosscheck)),
        review=None if tally.queued is None else QueueSummary(queue=str(queue.review), **asdict(tally.queued)),
    )
    return summary, tally


def _sampling(options: QueueOptions, *, force: bool) -> "Sampling | None":
    from atdp_cli.jobs.detect import Sampling

    if options.review is None:
        if options.review_share is not None:
            raise UsageError("--review-share goes with --review.", "Name the queue to write, or leave it out.")
        return None
    rate = {} if options.review_share is None else {"rate": options.review_share}
    return Sampling(queue=options.review, force=force, **rate)


def _print(line: str) -> None:
    sys.stdout.write(line)


def _discard(line: str) -> None:
    """Spans that nobody asked for."""
