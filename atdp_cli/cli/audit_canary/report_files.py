"""The files of an audit that a CI reads: JUnit, SARIF, a baseline, and what GitHub Actions shows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.cli.audit_canary.options import ReportOptions
from atdp_cli.cli.terminal.escape import escaped_json, escaped_lines, escaped_marks
from atdp_cli.cli.terminal.exit import write_error, write_safe

if TYPE_CHECKING:
    from atdp_cli.audit_result import AnyAudit
    from atdp_cli.report.sarif import ResultFile


def write_report_files(reports: ReportOptions, audits: "Sequence[AnyAudit]", manifest: Path | None) -> None:
    """The files that were asked for, and what GitHub Actions reads where this runs there."""
    from atdp_cli import __version__
    from atdp_cli.files.document import document_text
    from atdp_cli.report.baseline import make_baseline
    from atdp_cli.report.checks import checked
    from atdp_cli.report.github import annotations, step_summary
    from atdp_cli.report.junit import junit
    from atdp_cli.report.sarif import sarif

    models = [checked(audit) for audit in audits]
    located = None if manifest is None else _located(manifest)
    if reports.junit is not None:
        write_text_file(reports.junit, escaped_lines(junit(models, "audit-canary")))
    if reports.sarif is not None:
        write_text_file(reports.sarif, escaped_json(document_text(sarif(models, located, __version__))))
    if reports.write_baseline is not None:
        write_text_file(
            reports.write_baseline, escaped_json(document_text(make_baseline(audits).model_dump(mode="json")))
        )
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # Standard output may have to be JSON; GitHub reads both.
        for line in annotations(audits, located):
            write_safe(escaped_marks(line))  # the commands are meant
        if target := os.environ.get("GITHUB_STEP_SUMMARY"):
            _append(Path(target), step_summary(audits))


def write_text_file(path: Path, text: str) -> None:
    """Write a report file, or nothing."""
    from atdp_cli.files.atomic_write import atomic_write

    with atomic_write(path) as stream:
        # A name that is not UTF-8 stays readable, and valid as JSON.
        stream.write(text.encode("utf-8", "backslashreplace"))


def _append(path: Path, text: str) -> None:
    """Add to the step summary. One that cannot be written is no reason to lose the verdict."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(escaped_lines(text))
    except OSError as error:
        write_error(f"atdp: the step summary could not be written ({error.strerror}).")


def _located(manifest: Path) -> "ResultFile":
    from atdp_cli.report.checks import canary_lines
    from atdp_cli.report.sarif import ResultFile

    return ResultFile(uri=file_uri(manifest), lines=canary_lines(manifest.read_text(encoding="utf-8")))


def file_uri(path: Path) -> str:
    """A file as reports name it: relative to the working folder where it lies in it."""
    from urllib.parse import quote

    from atdp_cli.files.atomic_write import real_path

    whole, here = real_path(path), Path.cwd()
    return quote(whole.relative_to(here).as_posix()) if whole.is_relative_to(here) else whole.as_uri()
