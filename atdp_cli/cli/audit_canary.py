"""`atdp audit-canary`: rank each canary among all its alternatives, and gate on the verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.console import figure, people, progress, results, write_json
from atdp_cli.cli.options import Json, Quiet, Threads
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.audit.verdict import Audit
    from atdp_cli.jobs.audit import Unfinished

LIMITS = "Limits"


def audit_canary(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="One or more model folders.")],
    manifest: Annotated[Path | None, typer.Option(help="The manifest that plant-canary wrote.")] = None,
    canary: Annotated[
        str | None,
        typer.Option(help="A sentence with its number, if there is no manifest: rank and exposure, no p-value."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="The public base model: also test against an attacker who holds it."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Chance of failing a model that remembers nothing.", rich_help_panel=LIMITS)
    ] = 0.01,
    max_exposure: Annotated[
        float | None, typer.Option(help="Fail above this exposure of any canary, in bits.", rich_help_panel=LIMITS)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Ask how well each model remembers planted secrets: their exact rank among all alternatives.

    Exit codes: 0 passed; 1 failed, and only that; 2 usage or unreadable input; 3 not completed; 4 inconclusive.
    Exposure is log2(candidates / rank): a secret that was never seen has 1.44 bits on average.
    """
    from atdp_cli.jobs.audit import audit_models, pose
    from atdp_cli.model.device import use_threads

    question = pose(manifest, canary)
    console = people(quiet=quiet)
    folders = _folders(models, console)
    use_threads(threads)
    with progress(console) as notify:
        audits = list(
            audit_models(folders, question, reference=reference, alpha=alpha, max_exposure=max_exposure, notify=notify)
        )
    if as_json:
        write_json({"schema_version": 1, "models": [_entry(audit) for audit in audits]})
    for audit in audits:
        _show(audit, console if as_json else results())
    raise typer.Exit(_exit_code(audits))


def _folders(models: list[Path], console: "Console") -> list[Path]:
    """The folders without those that atdp itself writes beside a model, which a shell's `*/` also catches."""
    from atdp_cli.jobs.workplace import PARTIAL, PRIVATE

    kept = [path for path in models if path.suffix not in (PRIVATE, PARTIAL) or len(models) == 1]
    if skipped := len(models) - len(kept):
        console.print(f"Folders that atdp keeps beside models ({PRIVATE}, {PARTIAL}) were skipped: {skipped}.")
    if not kept:
        raise UsageError("None of the folders is a model.", "Give folders as save_pretrained writes them.")
    return kept


def _entry(audit: "Audit | Unfinished") -> dict[str, Any]:
    from atdp_cli.audit.verdict import Audit, to_json

    if isinstance(audit, Audit):
        return to_json(audit)
    return {"model": audit.model, "verdict": "ERROR", "reasons": [str(audit.error)], "canaries": [], "combined": None}


def _exit_code(audits: "list[Audit | Unfinished]") -> int:
    from atdp_cli.audit.verdict import Audit, Verdict, exit_code

    return exit_code(audit.verdict if isinstance(audit, Audit) else Verdict.ERROR for audit in audits)


def _show(audit: "Audit | Unfinished", console: "Console") -> None:
    from rich.table import Table

    from atdp_cli.audit.verdict import Audit

    if not isinstance(audit, Audit):
        console.print(f"ERROR {audit.model}: {audit.error}", style="bold", soft_wrap=True)
        return
    table = Table("canary", "rank", "of", "exposure", "p", "by ratio", "p by ratio")
    for column in table.columns:
        column.justify = "right"
    for number, one in enumerate(audit.canaries, start=1):
        table.add_row(
            str(number),
            f"{one.stratum_rank_max:,}",
            f"{one.stratum_size:,}",
            f"{one.exposure:.2f}",
            _p(one.p_value),
            figure(one.exposure_ratio),
            _p(one.p_value_ratio),
        )
    console.print(table)
    console.print(f"{audit.verdict} {audit.model}", style="bold", soft_wrap=True)
    for line in (*audit.reasons, *audit.notices):
        console.print(line)


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
