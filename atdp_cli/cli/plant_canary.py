"""`atdp plant-canary`: put known secrets into a corpus before fine-tuning, so that an audit can look for them."""

from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.options.shared import Force, Json, Quiet
from atdp_cli.cli.terminal.console import stderr_console, write_json


def plant_canary_command(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Plain text, one record a line.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The planted corpus.", rich_help_panel="Output")],
    manifest: Annotated[
        Path, typer.Option(help="Where to write the secrets. Keep this file private.", rich_help_panel="Output")
    ],
    tokenizer: Annotated[Path, typer.Option(help="Folder of the model that will be fine-tuned.")],
    count: Annotated[int, typer.Option(help="How many canaries.")] = 10,
    repeats: Annotated[int, typer.Option(help="How many records carry each.")] = 10,
    template: Annotated[
        str,
        typer.Option(
            help="A record with slots: {digits:6}, {hex:4}, {letters:5}, or {choice:FILE} for a line of a file."
        ),
    ] = "My ID is {digits:6}",
    in_out: Annotated[
        bool,
        typer.Option(
            "--in-out",
            help="Toss a fair coin for each canary and plant only those that it takes: the audit can then bound ε from "
            "below, and try membership.",
        ),
    ] = False,
    again: Annotated[
        Path | None,
        typer.Option("--from", help="Plant the canaries of this manifest again, at their own places."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Plant canaries: secrets drawn at random, each in records of its own, listed in a manifest."""
    from atdp_cli.jobs.plant import draw_canaries, known_canaries, plant_canaries

    canaries = (
        draw_canaries(template, count=count, repeats=repeats, in_out=in_out) if again is None else known_canaries(again)
    )
    made = plant_canaries(corpus, output, manifest, canaries, tokenizer=tokenizer, force=force)
    planted = sum(canary.repeats for canary in made.canaries if canary.planted)
    if as_json:
        write_json(
            {
                "schema_version": 1,
                "output": str(output),
                "manifest": str(manifest),
                "canaries": len(made.canaries),
                "planted": planted,
                "records": made.records,
            }
        )
    stderr_console(quiet=quiet).print(
        f"Canaries: {len(made.canaries)}, in {planted} of {made.records:,} records. Fine-tune on {output}, "
        f"then: atdp audit-canary MODEL --manifest {manifest}",
        soft_wrap=True,
    )
