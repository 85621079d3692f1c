"""`atdp audit-canary`: rank each canary among all its alternatives, and gate on the verdict."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from atdp_cli.audit.request import LIMITS, AuditRequest, CanaryTargets, prepare_audit
from atdp_cli.audit.results import AnyAudit, AuditDocument
from atdp_cli.cli.audit_canary_screen import exit_code, model_line, show_audit, show_summary
from atdp_cli.cli.ci_files import CiOptions, file_uri, tell_github, write_ci_files
from atdp_cli.cli.console import progress, stdout_console, write_json
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.detection.run_on import make_executor
from atdp_cli.files.checkpoint_names import holds_model
from atdp_cli.files.private import PARTIAL, PRIVATE
from atdp_cli.reporting.ci.baseline import new_failures, read_baseline
from atdp_cli.reporting.ci.checks import ResultFile, canary_lines, checked
from atdp_cli.reporting.ci.formats import step_summary
from atdp_cli.settings import Option


class GateOptions(CiOptions):
    """The files to write, and the baseline."""

    baseline: Annotated[Path | None, Option(LIMITS, main=True)] = None
    """Fail only what is worse than this file of --write-baseline records: a model or other canaries that it does not
    know, a canary or test that did not fail then, or an exposure that has risen by more than 1 bit. Models are known
    by their paths as given."""


def audit_canary_command(
    request: AuditRequest,
    writing: GateOptions,
    saying: ProgressOptions,
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="One or more model folders.")],
) -> None:
    """Measure how well each model remembers planted secrets: their exact rank among all alternatives.

    Exit codes: 0 passed; 1 failed, and only that; 2 usage or unreadable input; 3 not completed; 4 inconclusive.
    Exposure is log2(candidates / rank): a secret that was never seen has 1.44 bits on average.
    On GitHub Actions it also writes annotations and the step summary.
    """
    console = saying.console()
    shown = console if saying.as_json else stdout_console()
    request = request.replace(models=_folders(models, console))
    make_executor(request.run_on, 1)
    baseline = None if writing.baseline is None else read_baseline(writing.baseline)
    writing.check(request)
    canaries = prepare_audit(request)
    with progress(console, saying.progress) as notify:
        console.print(_task(request.models, canaries), soft_wrap=True)
        from atdp_cli.audit.run import audit_models

        audits: list[AnyAudit] = []
        for audit in audit_models(canaries, request, notify):
            audits.append(audit if baseline is None else new_failures(audit, baseline))
            if len(request.models) > 1:
                shown.print(model_line(audits[-1]), soft_wrap=True)
    file = None
    if request.manifest is not None:
        lines = canary_lines(request.manifest.read_text(encoding="utf-8"))
        file = ResultFile(uri=file_uri(request.manifest), lines=lines)
    checks = [checked(audit, file) for audit in audits]
    write_ci_files(writing, audits, checks, kind="canary")
    tell_github(checks, step_summary(audits))
    if saying.as_json:
        write_json(AuditDocument(models=tuple(audits)).model_dump(mode="json"))
    _show(audits, _secrets(canaries) if request.show_secrets else None, shown, whole=request.describe_candidates)
    raise typer.Exit(exit_code(audit.gate for audit in audits))


def _show(audits: Sequence[AnyAudit], secrets: list[str] | None, console: Console, *, whole: bool) -> None:
    """Print each model in full where that is asked for or there is one, and a table of several."""
    for number, audit in enumerate(audits if whole or len(audits) == 1 else ()):
        if number:
            console.print()
        show_audit(audit, secrets, console)
    if len(audits) > 1:
        show_summary(audits, console)


def _task(folders: Sequence[Path], canaries: CanaryTargets) -> str:
    """Describe the work ahead, before anything large is loaded."""
    models = f"{len(folders):,} models" if len(folders) > 1 else str(folders[0])
    targets = "1 canary" if len(canaries.targets) == 1 else f"{len(canaries.targets):,} canaries"
    return f"Auditing {models} for {targets} among {canaries.template.pool:,} candidates."


def _folders(models: list[Path], console: Console) -> tuple[Path, ...]:
    """The folders without those that atdp itself writes beside a model, which a shell's `*/` also catches.

    One in which a model lies is kept whatever its name, and so is a path that leads to no folder.
    """

    def beside_a_model(path: Path) -> bool:
        return path.suffix in (PRIVATE, PARTIAL) and path.is_dir() and not holds_model(path)

    kept = tuple(path for path in models if len(models) == 1 or not beside_a_model(path))
    if skipped := len(models) - len(kept):
        console.print(f"Folders that atdp keeps beside models ({PRIVATE}, {PARTIAL}) were skipped: {skipped}.")
    return kept


def _secrets(canaries: CanaryTargets) -> list[str]:
    """Each canary's secret for the table."""
    return [", ".join(canaries.template.secret(target.index)) for target in canaries.targets]
