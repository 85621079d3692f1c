"""`atdp detect`: where the sensitive characters of a corpus are."""

import sys
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
from atdp_cli.text.spans import Tier


def detect(
    corpus: CorpusArgument,
    tier: TierOption = Tier.HIGH_CONTEXTUAL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Spans file. Default: standard output.", rich_help_panel="Output"),
    ] = None,
    unit: UnitOption = "line",
    text_field: TextField = "text",
    id_field: IdField = None,
    skip_bad: SkipBad = False,
    allow: Allow = None,
    deny: Deny = None,
    spacy_pipeline: Annotated[
        str | None,
        typer.Option(
            help="A spaCy pipeline with tagger, parser and ner. Default: en_core_web_sm.", rich_help_panel="Detection"
        ),
    ] = None,
    jobs: Jobs = 1,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find what is sensitive. One JSON line a record; positions count code points from 0, the end exclusive.

    With --json the summary goes to standard output, and spans only to -o.
    """
    from atdp_cli.jobs.text import Search, detect_corpus, detect_to_file

    search = Search(
        tier=tier,
        unit=unit,
        text_field=text_field,
        id_field=id_field,
        skip_bad=skip_bad,
        pipeline=spacy_pipeline,
        allow=allow,
        deny=deny,
        jobs=jobs,
    )
    console = people(quiet=quiet)
    with progress(console) as notify:
        if output is not None:
            tally = detect_to_file(corpus, output, search, notify, force=force)
        else:
            tally = detect_corpus(corpus, search, _discard if as_json else _print, notify)
    if as_json:
        write_json(
            {
                "schema_version": 1,
                "tier": tier.value,
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
        f"({tier.value})."
    )
    say_skipped(console, tally.skipped)


def _print(line: str) -> None:
    sys.stdout.write(line)


def _discard(line: str) -> None:
    """Spans that nobody asked for."""
