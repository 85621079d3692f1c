"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

from typing import TYPE_CHECKING

import typer

from atdp_cli.cli.harden.options import HardenCommandOptions
from atdp_cli.cli.harden.screen import show_needs, show_plan, show_result
from atdp_cli.cli.options.command_line import full_command, without_paths
from atdp_cli.cli.terminal.console import progress, stderr_console, write_json
from atdp_cli.cli.terminal.escape import escaped
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.cli.terminal.signals import sigterm_interrupts, stop_on_interrupt
from atdp_cli.errors import AtdpError
from atdp_cli.jobs.harden.request import HardenRequest

if TYPE_CHECKING:
    from atdp_cli.training.distributed.ranks import Ranks

LIMIT_MISSED = 1


def harden_command(context: typer.Context, request: HardenRequest, printing: HardenCommandOptions) -> None:
    """Harden MODEL on its corpus: train on decoys of what is sensitive, or by --recipe with noise, and account for it.

    Writes OUT/ (model, report, ledger, recipe) and OUT.private/ (spans, perplexities, journal), which stays with you.
    Exit codes: 0 done; 1 perplexity rose above --max-perplexity-increase; 2 usage or unreadable input; 3 not completed.
    """
    from atdp_cli.training.distributed.torchrun import process_group

    with process_group(sharded=request.shard_model) as group:
        try:
            _harden(context, request, printing, group.ranks)
        except AtdpError as error:
            if group.first_to_fail():
                raise
            raise typer.Exit(error.exit_code) from None


def _harden(context: typer.Context, request: HardenRequest, printing: HardenCommandOptions, ranks: "Ranks") -> None:
    from atdp_cli.jobs.harden.run import Caller, plan, run_harden

    console = printing.console() if ranks.first else stderr_console(quiet=True)
    caller = Caller(
        ranks=ranks,
        command=full_command(context),
        command_without_paths=without_paths(context, HardenRequest),
        stop_signal=stop_on_interrupt,
        planned=lambda plan: show_plan(plan, console),
        measured=lambda plan: show_needs(plan, request.spans, console),
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
    if not result.dry_run and result.failed is not None:
        raise typer.Exit(LIMIT_MISSED)
