"""`atdp detect`: where the sensitive characters of a corpus are."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.options.shared import (
    BackendOptions,
    CorpusArgument,
    DetectionOptions,
    Force,
    ProgressOptions,
    ReadingOptions,
)
from atdp_cli.cli.terminal.console import progress, say_skipped, write_json
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.jobs.detect import Sampling

REVIEW = "Review"


def detect_command(
    corpus: CorpusArgument,
    detecting: DetectionOptions,
    working: BackendOptions,
    reading: ReadingOptions,
    saying: ProgressOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Spans file. Default: standard output.", rich_help_panel="Output"),
    ] = None,
    force: Force = False,
    review: Annotated[
        Path | None,
        typer.Option(
            help="Also draw sentences for people to review, spans masked, and write them to this file for atdp review.",
            rich_help_panel=REVIEW,
        ),
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(
            help="The share of the sentences to draw, half of them flagged. Default: 0.01.", rich_help_panel=REVIEW
        ),
    ] = None,
) -> None:
    """Find what is sensitive. One JSON line a record; positions count code points from 0, the end exclusive.

    With --json the summary goes to standard output, and spans only to -o.
    """
    from atdp_cli.jobs.detect import detect_corpus, detect_to_file

    sampling = _sampling(review, sample, force=force)
    corpus_read, detector = reading.corpus(corpus), detecting.detector(corpus, working)
    console = saying.console()
    with progress(console, saying.progress) as notify:
        if output is not None:
            tally = detect_to_file(corpus_read, output, detector, notify, force=force, review=sampling)
        else:
            tally = detect_corpus(corpus_read, detector, _discard if saying.as_json else _print, notify, sampling)
    if saying.as_json:
        write_json(
            {
                "schema_version": 1,
                "tier": detector.tier.value,
                "records": tally.records,
                "skipped": tally.skipped,
                "tokens": tally.tokens,
                "sensitive_tokens": tally.sensitive_tokens,
                "sensitive_share": tally.sensitive_share,
                "by_label": dict(tally.by_label.most_common()),
                "crosscheck": None if tally.crosscheck is None else asdict(tally.crosscheck),
                "review": None if tally.queued is None else {"queue": str(review), **asdict(tally.queued)},
            }
        )
    console.print(
        f"Records: {tally.records:,}. Tokens: {tally.tokens:,}, {tally.sensitive_share:.1%} of them sensitive "
        f"({detector.tier.value})."
    )
    say_skipped(console, tally.skipped)
    if tally.queued is not None:
        console.print(
            f"Sentences to review: {tally.queued.flagged:,} flagged, {tally.queued.unflagged:,} unflagged. "
            f"Next: atdp review {shlex.quote(str(review))}",
            soft_wrap=True,
        )


def _sampling(queue: Path | None, rate: float | None, *, force: bool) -> "Sampling | None":
    from atdp_cli.jobs.detect import Sampling

    if queue is None:
        if rate is not None:
            raise UsageError("--sample goes with --review.", "Name the queue to write, or leave it out.")
        return None
    return Sampling(queue=queue, force=force) if rate is None else Sampling(queue=queue, rate=rate, force=force)


def _print(line: str) -> None:
    sys.stdout.write(line)


def _discard(line: str) -> None:
    """Spans that nobody asked for."""
