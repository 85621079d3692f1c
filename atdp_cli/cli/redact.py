"""`atdp redact`: the corpus with placeholders over what is sensitive."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from atdp_cli.cli.options.shared import (
    CorpusArgument,
    ProgressOptions,
)
from atdp_cli.cli.terminal.console import StandardOutput, progress, say_skipped, write_json
from atdp_cli.cli.terminal.flagged import show_flagged
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.corpus_file import STANDARD_OUTPUT
from atdp_cli.options import Option, Options
from atdp_cli.text.options import (
    OUTPUT,
    DetectionOptions,
    ExecutorOptions,
    ReadingOptions,
    ReplacingOptions,
    SpanFileOptions,
)
from atdp_cli.text.redaction.placeholders import Style

if TYPE_CHECKING:
    from atdp_cli.files.compression import Writable
    from atdp_cli.jobs.detect import DetectionCounts
    from atdp_cli.report.summary.text import RedactionSummary


class RedactedOutputOptions(Options):
    """Where the redacted corpus goes."""

    output: Annotated[Path, Option(OUTPUT, main=True, flags=("--output", "-o"))]
    """The redacted corpus, in the same format; - for standard output, escaped where that is a terminal."""


class PlaceholderOptions(Options):
    """What stands in the place of spans."""

    style: Annotated[Style, Option(OUTPUT, main=True, metavar="STYLE")] = Style.LABEL
    """Placeholders: label, as [PERSON]; angle, <PERSON>; numbered, [PERSON_1], equal texts of a record alike;
    pseudonym, [PERSON_k7f2q4xa], equal texts of all records alike, by a keyed hash. Numbered leaks which mentions of a
    record are the same (equality and co-reference), pseudonym which of the whole corpus."""

    pseudonym_key: Annotated[Path | None, Option(OUTPUT)] = None
    """File of the key for pseudonyms, 32 bytes or more, created if it does not exist. Corpora with one key share their
    pseudonyms; who has it can test guesses. Default: a random key, thrown away."""


def redact_command(
    corpus: CorpusArgument,
    writing: RedactedOutputOptions,
    detection: DetectionOptions,
    working: ExecutorOptions,
    reading: ReadingOptions,
    printing: ProgressOptions,
    span_file: SpanFileOptions,
    placeholders: PlaceholderOptions,
    replacing: ReplacingOptions,
) -> None:
    """Replace what is sensitive by placeholders; everything else stays byte for byte, in Parquet value for value.

    The default tier masks names, dates, places and identifiers, and leaves text that people can read.
    """
    console, to_file = printing.console(), writing.output != STANDARD_OUTPUT
    if printing.as_json and not to_file:
        raise UsageError("-o - and --json both write to standard output.", "Name a file, or leave --json out.")
    with progress(console, printing.progress) as notify:
        summary, tally = run_redact(
            corpus,
            writing.output if to_file else StandardOutput(),
            detection=detection,
            working=working,
            reading=reading,
            span_file=span_file,
            placeholders=placeholders,
            replacing=replacing,
            notify=notify,
        )
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    where = writing.output if to_file else "standard output"
    console.print(f"Records redacted into {where}: {tally.records:,}.", soft_wrap=True)
    show_flagged(tally.flagged, console)
    say_skipped(console, tally.skipped)


def run_redact(
    corpus: Path,
    output: "Path | Writable",
    *,
    detection: DetectionOptions,
    working: ExecutorOptions,
    reading: ReadingOptions,
    span_file: SpanFileOptions,
    placeholders: PlaceholderOptions,
    replacing: ReplacingOptions,
    notify: Notify,
) -> "tuple[RedactionSummary, DetectionCounts]":
    """Redact as the options say, and show nothing.

    Returns:
        What `--json` prints, and the counts behind it.
    """
    from atdp_cli.jobs.detect import corpus_source
    from atdp_cli.jobs.detector import make_detector
    from atdp_cli.jobs.redact import redact_corpus
    from atdp_cli.report.summary.text import CrosscheckCounts, RedactionSummary

    tally = redact_corpus(
        corpus_source(reading, corpus),
        output,
        make_detector(detection, corpus, run_on=working.run_on),
        notify,
        force=replacing.force,
        spans=span_file.spans,
        **dict(placeholders),
    )
    summary = RedactionSummary(
        output=str(output) if isinstance(output, Path) else None,
        records=tally.records,
        skipped=tally.skipped,
        crosscheck=None if tally.crosscheck is None else CrosscheckCounts(**asdict(tally.crosscheck)),
    )
    return summary, tally
