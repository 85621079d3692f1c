"""atdp as functions: what its commands do, for programs that build on it. See docs/python.md.

    from atdp_cli.api import redact

    texts, summary = redact(["Emma Clarke called from +44 20 7946 0958."])

Each function takes paths, or records and models in memory; its keywords are the options of the command, and its result
is what the command prints with --json. Progress goes to `notify`. An expected failure is an `AtdpError`, whose text is
the line that the command prints. Nothing is printed.

What this module exports is public, and follows the version. All else in the package is private and may change.

Importing this module imports nothing heavy. Names of recipes and of results are looked up when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from atdp_cli import errors, events
from atdp_cli.api.audit import audit_canary, audit_corpus
from atdp_cli.api.hardening import harden, plan
from atdp_cli.api.ledgers import account, report
from atdp_cli.api.text import Detected, Redacted, detect, redact
from atdp_cli.errors import AtdpError, BudgetError, InputError, InterruptedRunError, RunError, UsageError
from atdp_cli.events import Event, Notify

if TYPE_CHECKING:
    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.memory_result import MemoryDocument
    from atdp_cli.privacy.schedule import Constant, RiseReset
    from atdp_cli.report.document import PrivateReport, PublicReport
    from atdp_cli.report.summary.account import AccountSummary
    from atdp_cli.report.summary.harden import HardenPlan, HardenSummary
    from atdp_cli.report.summary.text import DetectionSummary, RecordSpans, RedactionSummary
    from atdp_cli.training.objectives.kinds import Anchored, Distilled, Nothing, Sensitive, Uniform, Weighted
    from atdp_cli.training.objectives.unlearn import Unlearn
    from atdp_cli.training.recipe import (
        DPSGD,
        RECIPES,
        SGD,
        AdamBC,
        AdamW,
        Interpolate,
        Plain,
        Recipe,
        Text,
        Train,
        parse_recipe,
    )
    from atdp_cli.training.recipe_file import RecipeFile, load_recipe

_HOMES = {
    "audit_result": "AuditDocument",
    "memory_result": "MemoryDocument",
    "privacy.schedule": "Constant RiseReset",
    "report.summary.account": "AccountSummary",
    "report.document": "PrivateReport PublicReport",
    "report.summary.harden": "HardenPlan HardenSummary",
    "report.summary.text": "DetectionSummary RecordSpans RedactionSummary",
    "training.objectives.kinds": "Anchored Distilled Nothing Sensitive Uniform Weighted",
    "training.objectives.unlearn": "Unlearn",
    "training.recipe": "DPSGD RECIPES SGD AdamBC AdamW Interpolate Plain Recipe Text Train parse_recipe",
    "training.recipe_file": "RecipeFile load_recipe",
}
"""The names that are looked up when they are used, by module."""

_LATE = {name: f"atdp_cli.{module}" for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "DPSGD",
    "RECIPES",
    "SGD",
    "AccountSummary",
    "AdamBC",
    "AdamW",
    "Anchored",
    "AtdpError",
    "AuditDocument",
    "BudgetError",
    "Constant",
    "Detected",
    "DetectionSummary",
    "Distilled",
    "Event",
    "HardenPlan",
    "HardenSummary",
    "InputError",
    "Interpolate",
    "InterruptedRunError",
    "MemoryDocument",
    "Nothing",
    "Notify",
    "Plain",
    "PrivateReport",
    "PublicReport",
    "Recipe",
    "RecipeFile",
    "RecordSpans",
    "Redacted",
    "RedactionSummary",
    "RiseReset",
    "RunError",
    "Sensitive",
    "Text",
    "Train",
    "Uniform",
    "Unlearn",
    "UsageError",
    "Weighted",
    "account",
    "audit_canary",
    "audit_corpus",
    "detect",
    "errors",
    "events",
    "harden",
    "load_recipe",
    "parse_recipe",
    "plan",
    "redact",
    "report",
]
