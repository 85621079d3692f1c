"""`atdp detect`: where the sensitive characters of a corpus are."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import people, progress, say_skipped, write_json
from atdp_cli.cli.options import CorpusArgument, Detecting, Force, Reading, Saying


def detect(
    corpus: CorpusArgument,
    detecting: Detecting,
    reading: Reading,
    saying: Saying,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Spans file. Default: standard output.", rich_help_panel="Output"),
    ] = None,
    force: Force = False,
) -> None:
    """Find what is sensitive. One JSON line a record; positions count code points from 0, the end exclusive.

    With --json the summary goes to standard output, and spans only to -o.
    """
    from atdp_cli.jobs.text import detect_corpus, detect_to_file

    corpus_read, detector = reading.corpus(corpus), detecting.detector()
    console = people(quiet=saying.quiet)
    with progress(console) as notify:
        if output is not None:
            tally = detect_to_file(corpus_read, output, detector, notify, force=force)
        else:
            tally = detect_corpus(corpus_read, detector, _discard if saying.as_json else _print, notify)
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
            }
        )
    console.print(
        f"{tally.records:,} records, {tally.tokens:,} tokens, {tally.sensitive_share:.1%} of them sensitive "
        f"({detector.tier.value})."
    )
    say_skipped(console, tally.skipped)


def _print(line: str) -> None:
    sys.stdout.write(line)


def _discard(line: str) -> None:
    """Spans that nobody asked for."""
