"""`atdp redact`: the corpus with placeholders over what is sensitive."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

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
from atdp_cli.text.redaction.placeholders import Style


def redact_command(
    corpus: CorpusArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The redacted corpus, in the same format.", rich_help_panel="Output")
    ],
    detecting: DetectionOptions,
    working: BackendOptions,
    reading: ReadingOptions,
    saying: ProgressOptions,
    spans: Annotated[
        Path | None, typer.Option(help="Spans of atdp detect, in place of the detector.", rich_help_panel="Detection")
    ] = None,
    style: Annotated[
        Style,
        typer.Option(
            metavar="STYLE",
            help="Placeholders: label, as [PERSON]; angle, <PERSON>; numbered, [PERSON_1], equal texts of a record "
            "alike; pseudonym, [PERSON_k7f2q4xa], equal texts of all records alike, by a keyed hash. Numbered leaks "
            "which mentions of a record are the same (equality and co-reference), pseudonym which of the whole corpus.",
            rich_help_panel="Output",
        ),
    ] = Style.LABEL,
    pseudonym_key: Annotated[
        Path | None,
        typer.Option(
            help="File of the key for pseudonyms, 32 bytes or more, created if it does not exist. Corpora with one "
            "key share their pseudonyms; who has it can test guesses. Default: a random key, thrown away.",
            rich_help_panel="Output",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Replace what is sensitive by placeholders; everything else stays byte for byte, in Parquet value for value.

    For text that people will read, --tier low-entity masks names, dates, places and identifiers only.
    """
    from atdp_cli.jobs.detect import redact_corpus

    console = saying.console()
    with progress(console, saying.progress) as notify:
        tally = redact_corpus(
            reading.corpus(corpus),
            output,
            detecting.detector(corpus, working),
            notify,
            style=style,
            pseudonym_key=pseudonym_key,
            spans=spans,
            force=force,
        )
    if saying.as_json:
        write_json(
            {
                "schema_version": 1,
                "output": str(output),
                "records": tally.records,
                "skipped": tally.skipped,
                "crosscheck": None if tally.crosscheck is None else asdict(tally.crosscheck),
            }
        )
    console.print(f"Records redacted into {output}: {tally.records:,}.", soft_wrap=True)
    say_skipped(console, tally.skipped)
