"""The request of `report`, and the report that answers it."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from atdp_cli.errors import UsageError
from atdp_cli.files.checkpoint_names import CONFIG
from atdp_cli.reporting.document import REPORT_FILE, AuditReport, Report
from atdp_cli.reporting.write import (
    attach_audits,
    attach_findings,
    audit_report,
    checked_name,
    read_audits,
    read_report,
    rewrite_reports,
)
from atdp_cli.settings import Option, Options


class ReportRequest(Options):
    """The report to read, and the files to put into it first.

        report(ReportRequest(folder="hardened", audit="audit.json"))

    Raises:
        UsageError: The name does not fit the head of a report.
    """

    folder: Annotated[Path, Option(argument=True, metavar="OUT")]
    """Folder that harden wrote; OUT.private for the whole report."""

    name: Annotated[Annotated[str, AfterValidator(checked_name)] | None, Option(metavar="NAME")] = None
    """The model's name in OUT's reports, which are written again. It is published with them."""

    audit: Annotated[Path | None, Option(metavar="FILE")] = None
    """Put the JSON of audit-canary into OUT's reports, and write all of them again. Audits of other models than OUT and
    its start go into the private report. Of a model that harden did not write, show a report of its audits alone."""

    publish_audits: Annotated[bool, Option()] = False
    """With --audit: put the audits of other models into the public report as well."""

    findings: Annotated[Path | None, Option(metavar="FILE")] = None
    """Put the JSON of audit-corpus (memory maps) or of review (what the detector misses) into the report of
    OUT.private, and write it again."""


def report(request: ReportRequest) -> Report | AuditReport:
    """A run's privacy report, from its JSON alone; what the request adds is put into the report's files first.

    Returns:
        The public report of OUT, or the whole one of OUT.private; for a model that `harden` did not write its audits.

    Raises:
        InputError: A report, the audits or the findings cannot be read, or none of them is of this model.
        RunError: A file cannot be written.
    """
    folder = request.folder
    if request.publish_audits and request.audit is None:
        raise UsageError("--publish-audits goes with --audit.", "Add --audit FILE.")
    if request.audit is not None and not (folder / REPORT_FILE).exists() and (folder / CONFIG).exists():
        if request.name is not None or request.findings is not None:
            raise UsageError(
                f"{folder} has no report, so nothing can be put into one.", "Leave out --name and --findings."
            )
        return audit_report(folder, read_audits(request.audit))
    if request.name is not None:
        rewrite_reports(folder, lambda report: report.model_copy(update={"name": request.name}))
    if request.findings is not None:
        attach_findings(folder, request.findings)
    if request.audit is None:
        return read_report(folder)
    return attach_audits(folder, read_audits(request.audit), publish=request.publish_audits)
