"""`atdp detect`: where the sensitive characters of a corpus are."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import progress, show_found, stderr_console, write_json
from atdp_cli.cli.generate import Eager
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.detection.run import DetectRequest, detect, discard
from atdp_cli.errors import UsageError
from atdp_cli.files.corpus_file import STANDARD_OUTPUT
from atdp_cli.settings import DETECTION, Option


def _write_settings(context: typer.Context, path: Path | None) -> None:
    """The callback of --write-detector: write the file and stop."""
    if path is None or context.resilient_parsing:
        return
    from atdp_cli.detection.settings import write_detector

    write_detector(path)
    stderr_console().print(f"Written: {path}. Change it, and give it by --detector.", soft_wrap=True)
    raise typer.Exit


class DetectPrintingOptions(ProgressOptions):
    """The options for what the command prints or writes beside its work."""

    write_detector: Annotated[Path | None, Option(DETECTION, metavar="FILE.toml"), Eager(_write_settings)] = None
    """Write a file for --detector, in which every setting is explained and none is changed, and stop."""


def detect_command(request: DetectRequest, printing: DetectPrintingOptions) -> None:
    """Find what is sensitive. One JSON line a record; positions count code points from 0, the end exclusive.

    With --json the summary goes to standard output, and spans only to -o.
    """
    console = printing.console()
    if printing.as_json and request.output == STANDARD_OUTPUT:
        raise UsageError("-o - and --json both write to standard output.", "Name a file, or leave --json out.")
    with progress(console, printing.progress) as notify:
        summary = detect(request, notify, discard if printing.as_json else sys.stdout.write)
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    console.print(
        f"Records: {summary.records:,}. Tokens: {summary.tokens:,}, {summary.sensitive_share:.1%} of them sensitive "
        f"({summary.tier})."
    )
    show_found(summary, console)
    if summary.review is not None:
        console.print(
            f"Sentences to review: {summary.review.flagged:,} flagged, {summary.review.unflagged:,} unflagged. "
            f"Next: atdp review {shlex.quote(summary.review.queue)}",
            soft_wrap=True,
        )
