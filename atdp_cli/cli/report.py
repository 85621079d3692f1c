"""`atdp report`: show, convert, compare or verify a run's report, or attach audits to it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import StandardOutput, stderr_console, stdout_console, write_json
from atdp_cli.cli.escape import escaped_json
from atdp_cli.cli.harden_screen import show_usefulness
from atdp_cli.cli.help import JsonOptions
from atdp_cli.cli.report_screen import show_audit_report, show_report, show_table, show_verification
from atdp_cli.detection.options import ReplacingOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import atomic_write, check_apart, check_new
from atdp_cli.files.corpus_file import STANDARD_OUTPUT
from atdp_cli.reporting.document import AuditReport, public_of
from atdp_cli.reporting.html import render_audits, render_html
from atdp_cli.reporting.request import ReportRequest, report
from atdp_cli.reporting.verify import verify
from atdp_cli.reporting.write import as_json, read_report
from atdp_cli.settings import OUTPUT, Option, Options, named_paths

DIFFERENT, UNCHECKED = 1, 4


class ReportCommandOptions(Options):
    """The models and the form of the report."""

    others: Annotated[tuple[Path, ...], Option(argument=True, metavar="OUT...")] = ()
    """More such folders: a table of all."""

    html: Annotated[Path | None, Option(OUTPUT, metavar="FILE", writes=True)] = None
    """Write it as one HTML file; - for standard output."""

    eval_data: Annotated[Path | None, Option()] = None
    """Held-out corpus: compare any models on it instead, with fresh values. Do they say a value again that a record has
    before, and what is their perplexity?"""

    verify: Annotated[bool, Option()] = False
    """Compare OUT's reports with its ledger, its files and, with --audit, the audits. Write nothing."""


def report_command(
    request: ReportRequest,
    printing: JsonOptions,
    options: ReportCommandOptions,
    replacing: ReplacingOptions,
) -> None:
    """Show a run's privacy report again, from its JSON alone.

    Without an option it is for the terminal. Exit codes: 0 done; 1 with --verify, a difference; 2 usage or unreadable
    input; 3 not completed; 4 with --verify, audits without their file.
    """
    folder = request.folder
    if options.others or options.eval_data is not None:
        changed = (request.name, request.audit, request.findings, request.publish_audits)
        if any(changed) or options.html is not None or options.verify:
            raise UsageError("Several models are compared in a table.", "Leave other options out, or give one folder.")
        _compare((folder, *options.others), options.eval_data, as_json=printing.as_json)
        return
    if options.html is not None and printing.as_json:
        raise UsageError("--html and --json exclude each other.", "Give one of them.")
    page = None if options.html == STANDARD_OUTPUT else options.html
    check_apart(*named_paths(request, options))
    if page is not None:
        check_new(page, force=replacing.force)
    if options.verify:
        shown = (options.html, request.findings, request.name, printing.as_json or None)
        _verify(folder, request.audit, showing=any(option is not None for option in shown))
        return
    read = report(request)
    if not isinstance(read, AuditReport):
        _say_what_was_put_in(request)
    if printing.as_json:
        sys.stdout.write(escaped_json(as_json(read)))
    elif options.html is not None:
        _write_page(render_audits(read) if isinstance(read, AuditReport) else render_html(read), page, replacing.force)
    elif isinstance(read, AuditReport):
        show_audit_report(read, stdout_console())
    else:
        show_report(read, stdout_console())


def _say_what_was_put_in(request: ReportRequest) -> None:
    folder = request.folder
    alone = "" if request.publish_audits else " Those of other models are in the private one alone."
    for given, says in (
        (request.name, f"The name is in the reports of {folder}."),
        (request.findings, f"The findings are in the private report of {folder}."),
        (request.audit, f"The audits are in the reports of {folder}.{alone}"),
    ):
        if given is not None:
            stderr_console().print(says, soft_wrap=True)


def _write_page(html: str, page: Path | None, force: bool) -> None:
    if page is None:
        StandardOutput().write(html.encode())
        return
    with atomic_write(page, replace=force) as stream:
        stream.write(html.encode())


def _compare(folders: Sequence[Path], eval_data: Path | None, *, as_json: bool) -> None:
    """A table of the reports of folders, or of what their models can do on held-out text."""
    if eval_data is None:
        reports = {str(folder): read_report(folder) for folder in folders}
        if as_json:
            write_json({name: report.model_dump(mode="json") for name, report in reports.items()})
        else:
            show_table(reports, stdout_console())
        return
    from atdp_cli.hardening.measure import compare

    entries = compare(folders, eval_data)
    if as_json:
        write_json([entry.model_dump(mode="json") for entry in entries])
    else:
        show_usefulness(entries, stdout_console())


def _verify(folder: Path, audit: Path | None, *, showing: bool) -> None:
    """Compare a report with what it was made from, and exit with 1 where they differ."""
    if showing:
        raise UsageError(
            "--verify shows and changes no report.",
            "Leave out --html, --json, --findings and --name.",
        )
    differences = verify(folder, audit)
    # Audits can only be confirmed by their file.
    unchecked = audit is None and bool(public_of(read_report(folder)).audits)
    show_verification(folder, differences, stdout_console(), unchecked=unchecked)
    if differences or unchecked:
        raise typer.Exit(DIFFERENT if differences else UNCHECKED)
