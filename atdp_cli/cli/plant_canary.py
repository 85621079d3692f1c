"""`atdp plant-canary`: put known secrets into a corpus before fine-tuning, so that an audit can look for them."""

from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.options.shared import OutputOptions
from atdp_cli.cli.terminal.console import stderr_console, write_json
from atdp_cli.options import Option, Options
from atdp_cli.text.options import OUTPUT, ReplacingOptions


class PlantOptions(Options):
    """Which canaries, and where they go."""

    output: Annotated[Path, Option(OUTPUT, flags=("--output", "-o"))]
    """The planted corpus."""

    manifest: Annotated[Path, Option(OUTPUT)]
    """Where to write the secrets. Keep this file private."""

    tokenizer: Annotated[Path, Option()]
    """Folder of the model that will be fine-tuned."""

    count: Annotated[int, Option()] = 10
    """How many canaries."""

    repeats: Annotated[int, Option()] = 10
    """How many records carry each."""

    template: Annotated[str, Option()] = "My ID is {digits:6}"
    """A record with slots: {digits:6}, {hex:4}, {letters:5}, or {choice:FILE} for a line of a file."""

    in_out: Annotated[bool, Option()] = False
    """Toss a fair coin for each canary and plant only those that it takes: the audit can then bound ε from below, and
    try membership."""

    again: Annotated[Path | None, Option(flags=("--from",))] = None
    """Plant the canaries of this manifest again, at their own places."""


def plant_canary_command(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Plain text, one record a line.")],
    options: PlantOptions,
    replacing: ReplacingOptions,
    printing: OutputOptions,
) -> None:
    """Plant canaries: secrets drawn at random, each in records of its own, listed in a manifest."""
    from atdp_cli.jobs.plant import draw_canaries, known_canaries, plant_canaries

    output, manifest = options.output, options.manifest
    canaries = (
        draw_canaries(options.template, count=options.count, repeats=options.repeats, in_out=options.in_out)
        if options.again is None
        else known_canaries(options.again)
    )
    made = plant_canaries(corpus, output, manifest, canaries, tokenizer=options.tokenizer, force=replacing.force)
    planted = sum(canary.repeats for canary in made.canaries if canary.planted)
    if printing.as_json:
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
    stderr_console(quiet=printing.quiet).print(
        f"Canaries: {len(made.canaries)}, in {planted} of {made.records:,} records. Fine-tune on {output}, "
        f"then: atdp audit-canary MODEL --manifest {manifest}",
        soft_wrap=True,
    )
