"""Harden language models against leaking their training data: the commands of atdp as functions.

    from atdp_cli import HardenRequest, plan

    plan(HardenRequest(model="model", data=["corpus.txt"]))

Each function takes a request, whose fields are the options of its command, and returns what the command prints with
--json. Progress goes to `notify`. An expected failure is an `AtdpError`; its text is the line that the command prints.
What is exported here is public, all else in the package is private. Importing it loads nothing heavy. See
docs/python.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from atdp_cli import events
from atdp_cli.errors import AtdpError, BudgetError, InputError, InterruptedRunError, RunError, UsageError

if TYPE_CHECKING:
    from atdp_cli.accounting.request import AccountRequest
    from atdp_cli.accounting.results import AccountSummary
    from atdp_cli.accounting.run import account
    from atdp_cli.audit.request import AuditRequest
    from atdp_cli.audit.results import AuditDocument
    from atdp_cli.audit.run import audit_canary
    from atdp_cli.decoys.request import DecoyRequest, decoy
    from atdp_cli.decoys.run import DecoySummary
    from atdp_cli.detection.redact import RedactRequest, redact
    from atdp_cli.detection.results import DetectionSummary, RedactionSummary
    from atdp_cli.detection.run import DetectRequest, detect
    from atdp_cli.hardening.measure import compare
    from atdp_cli.hardening.request import HardenRequest
    from atdp_cli.hardening.run import harden, plan
    from atdp_cli.hardening.summary import HardenPlan, HardenSummary
    from atdp_cli.memorisation.request import MapRequest
    from atdp_cli.memorisation.results import MemoryDocument
    from atdp_cli.memorisation.run import audit_corpus
    from atdp_cli.reporting.document import PrivateReport, PublicReport
    from atdp_cli.reporting.request import ReportRequest, report

__version__ = "0.1.0"

_HOMES = {
    "AccountRequest": "accounting.request",
    "AccountSummary": "accounting.results",
    "AuditDocument": "audit.results",
    "AuditRequest": "audit.request",
    "DecoyRequest": "decoys.request",
    "DecoySummary": "decoys.run",
    "DetectRequest": "detection.run",
    "DetectionSummary": "detection.results",
    "HardenPlan": "hardening.summary",
    "HardenRequest": "hardening.request",
    "HardenSummary": "hardening.summary",
    "MapRequest": "memorisation.request",
    "MemoryDocument": "memorisation.results",
    "PrivateReport": "reporting.document",
    "PublicReport": "reporting.document",
    "RedactRequest": "detection.redact",
    "RedactionSummary": "detection.results",
    "ReportRequest": "reporting.request",
    "account": "accounting.run",
    "audit_canary": "audit.run",
    "audit_corpus": "memorisation.run",
    "compare": "hardening.measure",
    "decoy": "decoys.request",
    "detect": "detection.run",
    "harden": "hardening.run",
    "plan": "hardening.run",
    "redact": "detection.redact",
    "report": "reporting.request",
}
"""The modules of the names that are looked up when they are used."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "AccountRequest",
    "AccountSummary",
    "AtdpError",
    "AuditDocument",
    "AuditRequest",
    "BudgetError",
    "DecoyRequest",
    "DecoySummary",
    "DetectRequest",
    "DetectionSummary",
    "HardenPlan",
    "HardenRequest",
    "HardenSummary",
    "InputError",
    "InterruptedRunError",
    "MapRequest",
    "MemoryDocument",
    "PrivateReport",
    "PublicReport",
    "RedactRequest",
    "RedactionSummary",
    "ReportRequest",
    "RunError",
    "UsageError",
    "account",
    "audit_canary",
    "audit_corpus",
    "compare",
    "decoy",
    "detect",
    "events",
    "harden",
    "plan",
    "redact",
    "report",
]
