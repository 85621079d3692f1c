"""One rich audit in every form that it is written in, byte by byte as commit 63ad861 wrote it.

Fields that were added since have their defaults there, and are left out before the comparison.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.audit_result import AnyAudit, AuditDocument
from atdp_cli.cli.terminal.console import write_json
from atdp_cli.files.document import document_text
from atdp_cli.jobs.report import as_json, read_audits, with_audits
from atdp_cli.report.ci.baseline import make_baseline, new_failures
from atdp_cli.report.ci.checks import ResultFile, checked
from atdp_cli.report.ci.github import annotations, step_summary
from atdp_cli.report.ci.junit import junit
from atdp_cli.report.ci.sarif import sarif
from tests.report.documents import public
from tests.report.rich_audit import audits

PINNED = Path(__file__).parent / "pinned"
MANIFEST = ResultFile(uri="canaries.json", lines=(6, 20, 34, 48))


ADDED = re.compile(
    r',\s*"(?:(?:detectable|mean_limit|mean_limit_ratio|scope|missing|gaussian)": null'
    r'|gates": \[\s*"ranks"\s*\]|(?:attack_tests|attacks|group_epsilon)": \[\])'
)


def without_added(text: str) -> str:
    """A JSON text as the earlier version would have written it."""
    return ADDED.sub("", text)


def _judged() -> list[AnyAudit]:
    """A new failure, one that the baseline knows, and an audit that was not completed."""
    first, second, third = audits()
    known = make_baseline([second])
    return [first, new_failures(second, known), new_failures(third, known)]


def _attached() -> str:
    """The audits as a report holds them, its other parts left out."""
    return "".join(as_json(audit) for audit in with_audits(public(), read_audits(PINNED / "audit.json")).audits)


FORMS: dict[str, Callable[[], str]] = {
    "junit.xml": lambda: junit([checked(audit) for audit in _judged()], "audit-canary"),
    "sarif.json": lambda: document_text(sarif([checked(audit, MANIFEST) for audit in _judged()], "1.0")),
    "annotations.txt": lambda: "\n".join(annotations([checked(audit, MANIFEST) for audit in _judged()])) + "\n",
    "summary.md": lambda: step_summary(_judged()),
    "baseline.json": lambda: without_added(document_text(make_baseline(_judged()).model_dump(mode="json"))),
    "audits_of_a_report.txt": _attached,
}


def test_the_json_of_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(AuditDocument(models=tuple(_judged())).model_dump(mode="json"))
    assert without_added(capsys.readouterr().out) == (PINNED / "audit.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMS)
def test_every_other_form(name: str) -> None:
    assert without_added(FORMS[name]()) == (PINNED / name).read_text(encoding="utf-8")
