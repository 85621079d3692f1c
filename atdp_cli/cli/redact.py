"""`atdp redact`: the corpus with placeholders over what is sensitive."""

from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import people, progress, say_skipped, write_json
from atdp_cli.cli.options import (
    Allow,
    CorpusArgument,
    Deny,
    Force,
    IdField,
    Jobs,
    Json,
    Quiet,
    SkipBad,
    TextField,
    TierOption,
    UnitOption,
)
from atdp_cli.text.redaction import Style
from atdp_cli.text.spans import Tier


def redact(
    corpus: CorpusArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The redacted corpus, in the same format.", rich_help_panel="Output")
    ],
    spans: Annotated[
        Path | None, typer.Option(help="Spans of atdp detect, in place of the detector.", rich_help_panel="Detection")
    ] = None,
    tier: TierOption = Tier.HIGH_CONTEXTUAL,
    style: Annotated[
        Style, typer.Option(help="Placeholders: [PERSON] or <PERSON>.", rich_help_panel="Output")
    ] = Style.LABEL,
    unit: UnitOption = "line",
    text_field: TextField = "text",
    id_field: IdField = None,
    skip_bad: SkipBad = False,
    allow: Allow = None,
    deny: Deny = None,
    jobs: Jobs = 1,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replace what is sensitive by placeholders; everything else stays byte for byte, in Parquet value for value.

    For text that people will read, --tier low-entity masks names, dates, places and identifiers only.
    """
    from atdp_cli.jobs.text import Search, redact_corpus

    search = Search(
        tier=tier,
        unit=unit,
        text_field=text_field,
        id_field=id_field,
        skip_bad=skip_bad,
        allow=allow,
        deny=deny,
        jobs=jobs,
    )
    console = people(quiet=quiet)
    with progress(console) as notify:
        tally = redact_corpus(corpus, output, search, notify, style=style, spans=spans, force=force)
    if as_json:
        write_json({"schema_version": 1, "output": str(output), "records": tally.records, "skipped": tally.skipped})
    console.print(f"{tally.records:,} records redacted into {output}.", soft_wrap=True)
    say_skipped(console, tally.skipped)
