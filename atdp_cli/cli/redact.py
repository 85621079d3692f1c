"""`atdp redact`: the corpus with placeholders over what is sensitive."""

from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import people, progress, say_skipped, write_json
from atdp_cli.cli.options import CorpusArgument, Detecting, Force, Reading, Saying
from atdp_cli.text.redaction import Style


def redact(
    corpus: CorpusArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The redacted corpus, in the same format.", rich_help_panel="Output")
    ],
    detecting: Detecting,
    reading: Reading,
    saying: Saying,
    spans: Annotated[
        Path | None, typer.Option(help="Spans of atdp detect, in place of the detector.", rich_help_panel="Detection")
    ] = None,
    style: Annotated[
        Style, typer.Option(help="Placeholders: [PERSON] or <PERSON>.", rich_help_panel="Output")
    ] = Style.LABEL,
    force: Force = False,
) -> None:
    """Replace what is sensitive by placeholders; everything else stays byte for byte, in Parquet value for value.

    For text that people will read, --tier low-entity masks names, dates, places and identifiers only.
    """
    from atdp_cli.jobs.text import redact_corpus

    console = people(quiet=saying.quiet)
    with progress(console) as notify:
        tally = redact_corpus(
            reading.corpus(corpus), output, detecting.detector(), notify, style=style, spans=spans, force=force
        )
    if saying.as_json:
        write_json({"schema_version": 1, "output": str(output), "records": tally.records, "skipped": tally.skipped})
    console.print(f"{tally.records:,} records redacted into {output}.", soft_wrap=True)
    say_skipped(console, tally.skipped)
