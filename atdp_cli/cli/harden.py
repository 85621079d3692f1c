"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

import sys
from typing import Annotated

import typer
from pydantic import Field
from rich.table import Column, Table
from rich.text import Text

from atdp_cli.cli.console import WITHOUT_EDGES, make_table, progress, stderr_console, stdout_console, write_json
from atdp_cli.cli.escape import escaped
from atdp_cli.cli.exit import sigterm_interrupts, stop_on_interrupt
from atdp_cli.cli.generate import Eager, full_command, without_paths
from atdp_cli.cli.harden_screen import show_needs, show_plan, show_preview, show_result
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.cli.json_lines import ProgressOption
from atdp_cli.errors import AtdpError, UsageError
from atdp_cli.hardening.request import HardenRequest
from atdp_cli.settings import OUTPUT, Option
from atdp_cli.training.options import TRAINING
from atdp_cli.training.parallel.ranks import Ranks, process_group

NOTES = (
    "Stages run from top to bottom; rising and constant is the noise. Any recipes are joined by +, as in "
    "redacted+atdp. An option of one stage is set by --set, as in --set no-dp.epochs=5. A recipe of your own: "
    "--recipe FILE.toml; every run writes the one that it followed into OUT/recipe.toml.",
    "Whole records: a finite ε for each record. Flagged values: one for its flagged characters alone (with --tier "
    "low-entity or high-entity). Noisy stages alone: one for what they add, which protects no record.",
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


def _table() -> Table:
    from atdp_cli.hardening.recipes import recipe_summaries

    head = ("recipe", "stages", Column(Text("history\npublic")), Column(Text("history\nunknown")))
    rows = [
        (each.recipe, Text("\n".join(each.stages) or "none"), each.public, each.unknown) for each in recipe_summaries()
    ]
    return make_table(head, rows, **WITHOUT_EDGES)


class HardenCommandOptions(ProgressOptions):
    """What to print, and whether to run."""

    dry_run: Annotated[bool, Option(OUTPUT, main=True, fingerprint=False)] = False
    """Print the plan and its ε, and stop."""

    preview: Annotated[int | None, Field(ge=1, le=100), Option(OUTPUT, metavar="N", fingerprint=False)] = None
    """Also print N records before and after replacement, before anything is trained; on a terminal only."""

    explain: Annotated[bool, Option(OUTPUT, fingerprint=False)] = False
    """Print the plan in full: each guarantee as a sentence, the stages and their settings."""

    list_recipes: Annotated[bool, Option(TRAINING), Eager(show_recipes)] = False
    """Print the recipes with what each guarantees, and stop."""


def harden_command(context: typer.Context, request: HardenRequest, printing: HardenCommandOptions) -> None:
    """Harden MODEL on its corpus: train on decoys of what is sensitive, or by --recipe with noise, and account for it.

    Writes OUT/ (model, report, ledger, recipe) and OUT.private/ (spans, perplexities, journal), which stays with you.
    Exit codes: 0 done; 2 usage or unreadable input; 3 not completed.
    """
    if printing.preview and (printing.quiet or printing.as_json or not sys.stdout.isatty()):
        raise UsageError(
            "--preview shows text of the corpus, so it goes with a terminal, and neither --json nor --quiet.",
            "Leave it out, or print to a terminal.",
        )
    with process_group(sharded=request.shard_model) as group:
        try:
            _harden(context, request, printing, group.ranks)
        except AtdpError as error:
            if group.first_to_fail():
                raise
            raise typer.Exit(error.exit_code) from None


def _harden(context: typer.Context, request: HardenRequest, printing: HardenCommandOptions, ranks: Ranks) -> None:
    from atdp_cli.hardening.run import Caller, plan, run_harden

    console = printing.console() if ranks.first else stderr_console(quiet=True)
    caller = Caller(
        ranks=ranks,
        command=full_command(context),
        command_without_paths=without_paths(context, HardenRequest, HardenCommandOptions),
        stop_signal=stop_on_interrupt,
        planned=lambda plan: show_plan(plan, console, explain=printing.explain),
        measured=lambda plan: show_needs(plan, request.spans, console),
        sampled=lambda planned, sample: show_preview(planned, sample, printing.preview, stdout_console()),
    )
    with sigterm_interrupts(), progress(console, printing.progress if ranks.first else ProgressOption.AUTO) as notify:
        result = plan(request, notify, caller) if printing.dry_run else run_harden(request, notify, caller)
    if result is None or not ranks.first:
        return
    if not result.dry_run:
        show_result(result, console)
    if printing.as_json:
        write_json(result.model_dump(mode="json"))
    elif not result.dry_run:
        typer.echo(escaped(result.output))
