"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.harden.load import Notice, Notifying, load_and_plan
from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.output import write_result
from atdp_cli.cli.harden.prepare import prepare
from atdp_cli.cli.options.command_line import full_command, without_paths
from atdp_cli.cli.terminal.console import progress, stderr_console
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.errors import AtdpError
from atdp_cli.events import Notify

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.request import Planned
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.training.distributed.torchrun import ProcessGroup

LIMIT_MISSED = 1


def harden_command(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a causal language model, as save_pretrained writes it.")
    ],
    options: HardenOptions,
) -> None:
    """Harden MODEL on its corpus: train on decoys of what is sensitive, or by --recipe with noise, and account for it.

    Writes OUT/ (model, report, ledger, recipe) and OUT.private/ (spans, perplexities, journal), which stays with you.
    Exit codes: 0 done; 1 perplexity rose above --max-perplexity-increase; 2 usage or unreadable input; 3 not completed.
    """
    from atdp_cli.training.distributed.torchrun import process_group

    with process_group(sharded=options.shard_model) as group:
        try:
            _harden(context, model, options, group)
        except AtdpError as error:
            if group.first_to_fail():
                raise
            raise typer.Exit(error.exit_code) from None


def _harden(context: typer.Context, model: Path, options: HardenOptions, group: "ProcessGroup") -> None:
    from atdp_cli.jobs.harden.auto import first_line
    from atdp_cli.jobs.harden.request import plan_request

    command = {"command": full_command(context), "command_without_paths": without_paths(context, HardenOptions)}
    prepared = prepare(model, options, group.ranks, command)
    console = options.console() if group.ranks.first else stderr_console(quiet=True)

    def notifying() -> AbstractContextManager[Notify]:
        return progress(console, options.progress if group.ranks.first else ProgressOption.AUTO)

    planned = plan_request(prepared.request)
    notice = Notice(text=first_line(planned, model, default=prepared.default), default=prepared.default)
    if options.dry_run:
        load_and_plan(planned, notice, console, notifying, options)
        return
    result = _run(planned, notice, console, notifying, options)
    if result is None:
        return
    write_result(planned, result, console, as_json=options.as_json)
    if result.failed is not None:
        raise typer.Exit(LIMIT_MISSED)


def _run(
    planned: "Planned",
    notice: Notice,
    console: "Console",
    notifying: Notifying,
    options: HardenOptions,
) -> "HardenResult | None":
    """Harden, unless the run to resume is over already. None in all processes but the first."""
    from atdp_cli.jobs.harden.spec import open_run

    spec = open_run(planned)  # before torch is loaded

    from atdp_cli.cli.terminal.signals import sigterm_interrupts, stop_on_interrupt
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.jobs.harden.run import harden_worker, run_plan

    if spec is None:
        return None
    if isinstance(spec, HardenResult):
        return spec
    model = load_and_plan(planned, notice, console, notifying, options)
    if not planned.request.ranks.first:
        with sigterm_interrupts():
            harden_worker(planned, spec, model, stop_on_interrupt)
        return None
    with sigterm_interrupts(), notifying() as notify:
        return run_plan(planned, spec, model, notify, stop_on_interrupt)
