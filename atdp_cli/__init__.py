"""Harden language models against leaking their training data: the commands of atdp as functions.

    from atdp_cli import HardenRequest, plan

    plan(HardenRequest(model="model", data=["corpus.txt"]))

Each function takes a request, whose fields are the options of its command, and returns what the command prints with
--json; `detect` and `redact` also return the counts behind it, and `decoy` what it wrote. Progress goes to `notify`. An
expected failure is an `AtdpError`, whose text is the line that the command prints. What is exported here is public, all
else in the package is private. Importing it loads nothing heavy. See docs/python.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from atdp_cli import events
from atdp_cli.errors import AtdpError, BudgetError, InputError, InterruptedRunError, RunError, UsageError

if TYPE_CHECKING:
    from atdp_cli.audit.request import AuditRequest
    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.jobs.account import account
    from atdp_cli.jobs.account_request import AccountRequest
    from atdp_cli.jobs.audit import audit_canary
    from atdp_cli.jobs.decoy.request import DecoyRequest, decoy
    from atdp_cli.jobs.detect import DetectRequest, detect
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.jobs.harden.run import harden, plan
    from atdp_cli.jobs.redact import RedactRequest, redact
    from atdp_cli.report.summary.account import AccountSummary
    from atdp_cli.report.summary.harden import HardenPlan, HardenSummary

__version__ = "0.1.0"

_HOMES = {
    "AccountRequest": "jobs.account_request",
    "AccountSummary": "report.summary.account",
    "AuditDocument": "audit_result",
    "AuditRequest": "audit.request",
    "DecoyRequest": "jobs.decoy.request",
    "DetectRequest": "jobs.detect",
    "HardenPlan": "report.summary.harden",
    "HardenRequest": "jobs.harden.request",
    "HardenSummary": "report.summary.harden",
    "RedactRequest": "jobs.redact",
    "account": "jobs.account",
    "audit_canary": "jobs.audit",
    "decoy": "jobs.decoy.request",
    "detect": "jobs.detect",
    "harden": "jobs.harden.run",
    "plan": "jobs.harden.run",
    "redact": "jobs.redact",
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
    "DetectRequest",
    "HardenPlan",
    "HardenRequest",
    "HardenSummary",
    "InputError",
    "InterruptedRunError",
    "RedactRequest",
    "RunError",
    "UsageError",
    "account",
    "audit_canary",
    "decoy",
    "detect",
    "events",
    "harden",
    "plan",
    "redact",
]
