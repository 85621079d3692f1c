"""`atdp harden --list-recipes`: what the named recipes do, and what each can guarantee."""

from typing import TYPE_CHECKING

import typer

from atdp_cli.cli.terminal.console import stdout_console

if TYPE_CHECKING:
    from rich.table import Table

NOTES = (
    "Stages run from top to bottom; rising and constant is the noise. Any recipes are joined by +, as in "
    "redacted+atdp. An option of one stage is set by --set, as in --set no-dp.epochs=5. A recipe of your own: "
    "--recipe FILE.toml; every run writes the one that it followed into OUT/recipe.toml.",
    "End to end is a finite ε for a whole record, selective one for its flagged characters alone (with --tier "
    "low-entity or high-entity), increment only one for what the stages with noise add.",
)


def show_recipes(context: typer.Context, wanted: bool) -> None:
    """The callback of the option: print the list and stop."""
    if not wanted or context.resilient_parsing:
        return
    console = stdout_console()
    console.print(_table())
    console.print()
    for note in NOTES:
        console.print(note)
    raise typer.Exit


def _table() -> "Table":
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    from atdp_cli.jobs.harden.recipes import recipe_summaries

    heads = (
        "recipe",
        "stages",
        Column(Text("history\npublic")),
        Column(Text("history\nunknown")),
    )
    table = Table(*heads, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for row in recipe_summaries():
        table.add_row(row.recipe, Text("\n".join(row.stages) or "none"), row.public, row.unknown)
    return table
