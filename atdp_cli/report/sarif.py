"""The audit as SARIF 2.1.0, which code scanning services read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from atdp_cli.report.audited import Check, Entry, Outcome, checks_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

_RULES = {
    "canary-remembered": "The model remembers a planted canary.",
    "model-remembers": "The model fails the audit of its planted canaries.",
    "inconclusive": "The audit can neither pass nor fail the model.",
    "not-audited": "The audit of the model could not be completed.",
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


def sarif(entries: Sequence[Entry], manifest: ManifestFile | None, version: str) -> dict[str, Any]:
    """The log: a result for each canary that fails, and for each verdict that is not PASS.

    Args:
        manifest: None where the canary was typed: results then have no location.
        version: Of atdp.
    """
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": _default(rule)}}
        for rule, text in _RULES.items()
    ]
    found = [part for entry in entries for part in checks_of(entry) if _reported(part)]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "atdp", "version": version, "rules": rules}},
                "invocations": [{"executionSuccessful": all(entry["verdict"] != "ERROR" for entry in entries)}],
                "results": [_result(part, manifest) for part in found],
            }
        ],
    }


def _reported(part: Check) -> bool:
    # What makes a model inconclusive is said once, by its verdict.
    return part.outcome in (Outcome.FAIL, Outcome.KNOWN) or (
        part.number is None and part.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR)
    )


def _result(part: Check, manifest: ManifestFile | None) -> dict[str, Any]:
    rule = _rule(part)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": _LEVELS[part.outcome],
        "message": {"text": f"{part.model}, {part.name}: {part.says}"},
        "partialFingerprints": {"atdpCanary/v1": f"{part.model}:{part.name}"},
    }
    if part.outcome is Outcome.KNOWN:
        result["baselineState"] = "unchanged"
    if manifest is not None:
        place = {"artifactLocation": {"uri": manifest.uri}, "region": {"startLine": manifest.line(part.number)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _rule(part: Check) -> str:
    if part.number is not None:
        return "canary-remembered"
    return {Outcome.INCONCLUSIVE: "inconclusive", Outcome.ERROR: "not-audited"}.get(part.outcome, "model-remembers")


def _default(rule: str) -> str:
    return "warning" if rule == "inconclusive" else "error"
