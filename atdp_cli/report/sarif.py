"""The audit as SARIF 2.1.0, which code scanning services read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from atdp_cli.audit_result import AnyAudit, Verdict
from atdp_cli.report.checks import Check, Outcome, checks_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

_RULES = {
    "canary-remembered": ("The model remembers a planted canary.", "error"),
    "model-remembers": ("The model fails the audit of its planted canaries.", "error"),
    "inconclusive": ("The audit can neither pass nor fail the model.", "warning"),
    "not-audited": ("The audit of the model could not be completed.", "error"),
}
_LEVELS = {
    Outcome.FAIL: "error",
    Outcome.KNOWN: "note",
    Outcome.INCONCLUSIVE: "warning",
    Outcome.ERROR: "error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """Where results are shown.

    Attributes:
        uri: Of the manifest, relative to the working folder where it lies in it.
        lines: On which line each canary's entry begins.
    """

    uri: str
    lines: tuple[int, ...]

    def line(self, number: int | None) -> int:
        """The line of a canary; the first for the verdict."""
        return 1 if number is None or number > len(self.lines) else self.lines[number - 1]


def sarif(audits: Sequence[AnyAudit], manifest: ManifestFile | None, version: str) -> dict[str, Any]:
    """The log: a result for each canary that fails, and for each verdict that is not PASS.

    Args:
        manifest: None where the canary was typed: results then have no location.
        version: Of atdp.
    """
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (text, level) in _RULES.items()
    ]
    reported = [check for audit in audits for check in checks_of(audit) if _reported(check)]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "atdp", "version": version, "rules": rules}},
                "invocations": [{"executionSuccessful": all(audit.verdict is not Verdict.ERROR for audit in audits)}],
                "results": [_result(check, manifest) for check in reported],
            }
        ],
    }


def _reported(check: Check) -> bool:
    # What makes a model inconclusive is said once, by its verdict.
    return check.outcome in (Outcome.FAIL, Outcome.KNOWN) or (
        check.number is None and check.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR)
    )


def _result(check: Check, manifest: ManifestFile | None) -> dict[str, Any]:
    rule = _rule(check)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": _LEVELS[check.outcome],
        "message": {"text": f"{check.model}, {check.name}: {check.text}"},
        "partialFingerprints": {"atdpCanary/v1": f"{check.model}:{check.name}"},
    }
    if check.outcome is Outcome.KNOWN:
        result["baselineState"] = "unchanged"
    if manifest is not None:
        place = {"artifactLocation": {"uri": manifest.uri}, "region": {"startLine": manifest.line(check.number)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _rule(check: Check) -> str:
    if check.number is not None:
        return "canary-remembered"
    return {Outcome.INCONCLUSIVE: "inconclusive", Outcome.ERROR: "not-audited"}.get(check.outcome, "model-remembers")
