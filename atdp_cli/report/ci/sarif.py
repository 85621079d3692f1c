"""An audit as SARIF 2.1.0, which code scanning services read."""

from collections.abc import Sequence
from typing import Any

from atdp_cli.report.ci.checks import Check, CheckedModel, Kind, Outcome, ResultFile

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

_COMMON = {
    "inconclusive": ("The audit can neither pass nor fail the model.", "warning"),
    "not-audited": ("The audit of the model could not be completed.", "error"),
}
_RULES: dict[Kind, dict[str, tuple[str, str]]] = {
    "canary": {
        "canary-remembered": ("The model remembers a planted canary.", "error"),
        "model-remembers": ("The model fails the audit of its planted canaries.", "error"),
        **_COMMON,
    },
    "text": {
        "text-memorised": ("The model has memorised a text of its corpus.", "error"),
        "model-memorised": ("The model has memorised more of its corpus than the limit allows.", "error"),
        **_COMMON,
    },
}
"""That of one of its kind, that of the verdict, and the others."""

_FINGERPRINTS: dict[Kind, str] = {"canary": "atdpCanary/v1", "text": "atdpText/v1"}
_LEVELS = {
    Outcome.FAIL: "error",
    Outcome.KNOWN: "note",
    Outcome.INCONCLUSIVE: "warning",
    Outcome.ERROR: "error",
}


def sarif(models: Sequence[CheckedModel], version: str, *, kind: Kind = "canary") -> dict[str, Any]:
    """The log: a result for each check that fails, and for each verdict that is not PASS.

    Args:
        version: Of atdp.
        kind: Of the models' checks.
    """
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (text, level) in _RULES[kind].items()
    ]
    results = [_result(check, model.file, kind) for model in models for check in model.checks if _reported(check)]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "atdp", "version": version, "rules": rules}},
                "invocations": [{"executionSuccessful": all(model.completed for model in models)}],
                "results": results,
            }
        ],
    }


def _reported(check: Check) -> bool:
    # What makes a model inconclusive is said once, by its verdict.
    return check.outcome in (Outcome.FAIL, Outcome.KNOWN) or (
        check.number is None and check.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR)
    )


def _result(check: Check, file: ResultFile | None, kind: Kind) -> dict[str, Any]:
    rule = _rule(check, kind)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": list(_RULES[kind]).index(rule),
        "level": _LEVELS[check.outcome],
        "message": {"text": f"{check.model}, {check.name}: {check.text}"},
        "partialFingerprints": {_FINGERPRINTS[kind]: f"{check.model}:{check.name}"},
    }
    if check.outcome is Outcome.KNOWN:
        result["baselineState"] = "unchanged"
    if file is not None:
        place = {"artifactLocation": {"uri": file.uri}, "region": {"startLine": file.line(check.number)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _rule(check: Check, kind: Kind) -> str:
    of_one, of_verdict, *_ = _RULES[kind]
    if check.number is not None:
        return of_one
    return {Outcome.INCONCLUSIVE: "inconclusive", Outcome.ERROR: "not-audited"}.get(check.outcome, of_verdict)
