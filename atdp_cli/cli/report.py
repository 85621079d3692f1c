"""`atdp report`: show, convert, compare or verify a run's report, or attach audits to it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.console import StandardOutput, stderr_console, stdout_console, write_json
from atdp_cli.cli.escape import escaped_json
from atdp_cli.cli.harden_screen import show_usefulness
from atdp_cli.cli.help import JsonOptions
from atdp_cli.cli.report_screen import show_report, show_table, show_verification
from atdp_cli.detection.options import ReplacingOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import atomic_write, check_apart, check_new
from atdp_cli.files.corpus_file import STANDARD_OUTPUT
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import Report, public_of
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.request import ReportRequest, report
from atdp_cli.reporting.verify import verify
from atdp_cli.reporting.write import as_json, read_report
from atdp_cli.settings import OUTPUT, Option, Options, named_paths

DIFFERENT, UNCHECKED = 1, 4


FORMS: dict[str, Callable[[Report], str]] = {
    "html": render_html,
    "json": as_json,
    "markdown": lambda report: render_card(public_of(report)),
}
"""The forms of a report by their options."""


class HtmlOptions(Options):
    """The report as a page."""

    html: Annotated[bool, Option(OUTPUT)] = False
    """As one HTML file."""


class ReportCommandOptions(Options):
    """The form of the report, and the file to write."""

    others: Annotated[tuple[Path, ...], Option(argument=True, metavar="OUT...")] = ()
    """More such folders: a table of all."""

    markdown: Annotated[bool, Option(OUTPUT)] = False
    """As the model card."""

    eval_data: Annotated[Path | None, Option()] = None
    """Held-out corpus: compare any models on it instead, with fresh values. Do they say a value again that a record has
    before, and what is their perplexity?"""

    verify: Annotated[bool, Option()] = False
    """Compare OUT's reports with its ledger, its files and, with --audit, the audits. Write nothing."""

    output: Annotated[Path | None, Option(OUTPUT, flags=("--output", "-o"), writes=True)] = None
    """File to write, or - for standard output. Default: -."""


def report_command(
    request: ReportRequest,
    page: HtmlOptions,
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
        changed = (request.name, request.audit, request.map, options.output)
        if any(changed) or page.html or options.verify or options.markdown:
            raise UsageError("Several models are compared in a table.", "Leave other options out, or give one folder.")
        _compare((folder, *options.others), options.eval_data, as_json=printing.as_json)
        return
    output = None if options.output == STANDARD_OUTPUT else options.output
    form = _form(dict(zip(FORMS, (page.html, printing.as_json, options.markdown), strict=True)))
    check_apart(*named_paths(request, options))
    _check(form, output, force=replacing.force)
    if options.verify:
        shown = (form, request.map, request.name)
        _verify(folder, request.audit, showing=any(option is not None for option in shown))
        return
    read = report(request)
    for given, says in (
        (request.name, f"The name is in the reports of {folder}."),
        (request.map, f"The maps are in the private report of {folder}."),
        (request.audit, f"The audits are in the reports of {folder}."),
    ):
        if given is not None:
            stderr_console().print(says, soft_wrap=True)
    if form is None:
        show_report(read, stdout_console())
        return
    text = FORMS[form](read)
    if output is not None:
        with atomic_write(output, replace=replacing.force) as stream:
            stream.write(text.encode())
    elif form == "json":
        sys.stdout.write(escaped_json(text))
    else:
        StandardOutput().write(text.encode())


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
            "Leave out --html, --json, --markdown, --map and --name.",
        )
    differences = verify(folder, audit)
    # Audits can only be confirmed by their file.
    unchecked = audit is None and bool(public_of(read_report(folder)).audits)
    show_verification(folder, differences, stdout_console(), unchecked=unchecked)
    if differences or unchecked:
        raise typer.Exit(DIFFERENT if differences else UNCHECKED)


def _check(form: str | None, output: Path | None, *, force: bool) -> None:
    if output is None:
        return
    if form is None:
        raise UsageError("-o goes with --html, --json or --markdown.", "Add one of them.")
    check_new(output, force=force)


def _form(given: dict[str, bool]) -> str | None:
    """The one form that is asked for; None for the terminal."""
    forms = [form for form, is_given in given.items() if is_given]
    if len(forms) > 1:
        raise UsageError(f"--{forms[0]} and --{forms[1]} exclude each other.", "Give one of them.")
    return forms[0] if forms else None
