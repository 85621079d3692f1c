"""`atdp audit-canary`: rank each canary among all its alternatives, and gate on the verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.audit_canary.options import (
    AttackOptions,
    BoundOptions,
    LimitOptions,
    ReportOptions,
    TargetOptions,
)
from atdp_cli.cli.audit_canary.output import exit_code, model_line, show_audit, show_summary
from atdp_cli.cli.audit_canary.request import make_audit_request
from atdp_cli.cli.options.shared import ProgressOptions, ThreadOptions
from atdp_cli.cli.terminal.ci_files import file_uri, tell_github, write_ci_files
from atdp_cli.cli.terminal.console import progress, stdout_console, write_json
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.text.options import ExecutorOptions
from atdp_cli.training.options import DeviceOptions

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.audit.request import CanaryTargets
    from atdp_cli.audit_result import AnyAudit
    from atdp_cli.report.ci.checks import CheckedModel


def audit_canary_command(
    targets: TargetOptions,
    limits: LimitOptions,
    bounds: BoundOptions,
    trying: AttackOptions,
    working: ExecutorOptions,
    reports: ReportOptions,
    saying: ProgressOptions,
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="One or more model folders.")],
    threads: ThreadOptions,
    computing: DeviceOptions,
) -> None:
    """Ask how well each model remembers planted secrets: their exact rank among all alternatives.

    Exit codes: 0 passed; 1 failed, and only that; 2 usage or unreadable input; 3 not completed; 4 inconclusive.
    Exposure is log2(candidates / rank): a secret that was never seen has 1.44 bits on average.
    On GitHub Actions it also writes annotations and the step summary.
    """
    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.report.ci.github import step_summary

    console = saying.console()
    folders = _folders(models, console)
    shown = console if saying.as_json else stdout_console()

    def show_line(audit: "AnyAudit") -> None:
        if len(folders) > 1:
            shown.print(model_line(audit), soft_wrap=True)

    with progress(console, saying.progress) as notify:
        audits, canaries, checked = run_audit(
            folders,
            limits=limits,
            bounds=bounds,
            trying=trying,
            working=working,
            reports=reports,
            targets=targets,
            threads=threads,
            computing=computing,
            notify=notify,
            began=lambda canaries: console.print(_task(folders, canaries), soft_wrap=True),
            ended=show_line,
        )
    tell_github(checked, step_summary(audits))
    if saying.as_json:
        write_json(AuditDocument(models=audits).model_dump(mode="json"))
    _show(audits, _secrets(canaries, shown=reports.show_secrets), shown, whole=len(folders) == 1 or trying.full)
    code = exit_code(audit.gate for audit in audits)
    raise typer.Exit(0 if limits.exit_zero and code in (1, 4) else code)


def run_audit(
    folders: Sequence[Path],
    *,
    limits: LimitOptions,
    bounds: BoundOptions,
    trying: AttackOptions,
    working: ExecutorOptions,
    reports: ReportOptions,
    targets: TargetOptions,
    threads: ThreadOptions,
    computing: DeviceOptions,
    notify: Notify,
    began: "Callable[[CanaryTargets], None]" = lambda _: None,
    ended: "Callable[[AnyAudit], None]" = lambda _: None,
) -> "tuple[tuple[AnyAudit, ...], CanaryTargets, list[CheckedModel]]":
    """Audit as the options say, and write the files that were asked for.

    Args:
        began: Called before torch is loaded, once nothing was refused.
        ended: Called after each model.

    Returns:
        What `--json` prints of each model, the canaries, and what the files for CI have.
    """
    from atdp_cli.audit.request import check_request, load_request
    from atdp_cli.jobs.backend import make_executor
    from atdp_cli.report.ci.baseline import new_failures, read_baseline

    canaries = load_request(targets.manifest, targets.canary, packed=targets.packed)
    request = make_audit_request(limits, bounds, trying, reports, targets, computing)
    baseline = read_baseline(limits.baseline) if limits.baseline is not None else None
    reports.files.check(force=reports.force)
    executor = make_executor(working.run_on, 1)
    check_request(canaries, request)
    _check_paths(folders, targets.reference, trying.other_text)
    began(canaries)

    from atdp_cli.jobs.audit import audit_models  # loads torch
    from atdp_cli.model.device import find_device, use_threads

    use_threads(threads.threads)
    find_device(computing.device)
    audits = []
    for audit in audit_models(folders, canaries, request, notify, executor):
        audits.append(audit if baseline is None else new_failures(audit, baseline))
        ended(audits[-1])
    return tuple(audits), canaries, _write_files(reports, audits, targets.manifest)


def _show(audits: "Sequence[AnyAudit]", secrets: list[str] | None, console: "Console", *, whole: bool) -> None:
    """All about each model where that is asked for, or there is one; and a table of several."""
    for number, audit in enumerate(audits if whole else ()):
        if number:
            console.print()
        show_audit(audit, secrets, console)
    if len(audits) > 1:
        show_summary(audits, console)


def _write_files(reports: ReportOptions, audits: "Sequence[AnyAudit]", manifest: Path | None) -> "list[CheckedModel]":
    from atdp_cli.report.ci.baseline import make_baseline
    from atdp_cli.report.ci.checks import ResultFile, canary_lines, checked

    file = None
    if manifest is not None:
        file = ResultFile(uri=file_uri(manifest), lines=canary_lines(manifest.read_text(encoding="utf-8")))
    models = [checked(audit, file) for audit in audits]
    write_ci_files(reports.files, models, kind="canary", baseline=make_baseline(audits))
    return models


def _check_paths(folders: Sequence[Path], reference: Path | None, other_text: Path | None) -> None:
    """Refuse what would end the audit later; of several models a bad one is reported beside the others."""
    from atdp_cli.files.corpus_file import check_readable
    from atdp_cli.model.folder import check_folder

    if reference is not None:
        check_folder(reference)
    if len(folders) == 1:
        check_folder(folders[0], audited=True)
    if other_text is not None:
        check_readable(other_text)


def _task(folders: Sequence[Path], canaries: "CanaryTargets") -> str:
    """What will be done, before anything large is loaded."""
    models = f"{len(folders):,} models" if len(folders) > 1 else str(folders[0])
    targets = "1 canary" if len(canaries.targets) == 1 else f"{len(canaries.targets):,} canaries"
    return f"Auditing {models} for {targets} among {canaries.template.pool:,} candidates."


def _folders(models: list[Path], console: "Console") -> list[Path]:
    """The folders without those that atdp itself writes beside a model, which a shell's `*/` also catches."""
    from atdp_cli.files.private import PARTIAL, PRIVATE

    kept = [path for path in models if path.suffix not in (PRIVATE, PARTIAL) or len(models) == 1]
    if skipped := len(models) - len(kept):
        console.print(f"Folders that atdp keeps beside models ({PRIVATE}, {PARTIAL}) were skipped: {skipped}.")
    if not kept:
        raise UsageError("None of the folders is a model.", "Give folders as save_pretrained writes them.")
    return kept


def _secrets(canaries: "CanaryTargets", *, shown: bool) -> list[str] | None:
    """Each canary's secret for the table; None where they are not shown."""
    if not shown:
        return None
    return [", ".join(canaries.template.secret(target.index)) for target in canaries.targets]
