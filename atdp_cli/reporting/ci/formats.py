"""Audits and memory maps as JUnit, SARIF, GitHub annotations and step summaries."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Any

from atdp_cli.audit.results import AnyAudit
from atdp_cli.memorisation.results import MemoryMap
from atdp_cli.reporting.ci.checks import Check, CheckedModel, Kind, Outcome, ResultFile, checks_of, memory_sentences

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ELEMENTS = {
    Outcome.FAIL: "failure",
    Outcome.KNOWN: "skipped",
    Outcome.INCONCLUSIVE: "skipped",
    Outcome.ERROR: "error",
}

_COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(models: Sequence[CheckedModel], command: str) -> str:
    """The document. A failure that the baseline knows is skipped, as is what is inconclusive."""
    root = ET.Element("testsuites", name=f"atdp {command}")
    for model in models:
        suite = ET.SubElement(root, "testsuite", name=_plain(model.model))
        for check in model.checks:
            _testcase(suite, check)
        _count(suite)
    _count(root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _testcase(suite: ET.Element, check: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname=_plain(check.model), name=check.name)
    message = _plain(check.message)
    if element := _ELEMENTS.get(check.outcome):
        ET.SubElement(case, element, message=message).text = None if element == "skipped" else message
    else:
        ET.SubElement(case, "system-out").text = message


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, kind in _COUNTS.items():
        element.set(name, str(len(list(element.iter(kind)))))


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


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
"""The rules of a kind: that of one check, that of the verdict, and the others."""

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


_COMMANDS = {Outcome.FAIL: "error", Outcome.ERROR: "error", Outcome.INCONCLUSIVE: "warning", Outcome.KNOWN: "notice"}

_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#&~"} | {"\n": " ", "\r": " "})


NO_WORSE = "FAIL, no worse than the baseline"


def annotations(models: Sequence[CheckedModel]) -> tuple[str, ...]:
    """Workflow commands, a line each: for each verdict that is not PASS, then for each canary or text that fails.

    GitHub shows the first ten errors of a step, so the verdicts come first.
    """
    annotated = [
        (check, model.file)
        for model in models
        for check in model.checks
        if check.outcome in _COMMANDS and (check.number is None or check.outcome is not Outcome.INCONCLUSIVE)
    ]
    verdicts_first = sorted(annotated, key=lambda each: each[0].number is not None)
    return tuple(_annotation(check, file) for check, file in verdicts_first)


def step_summary(audits: Sequence[AnyAudit]) -> str:
    """The Markdown table for the step summary."""
    rows = []
    for audit in audits:
        *canaries, verdict = checks_of(audit)
        failed = sum(check.outcome in (Outcome.FAIL, Outcome.KNOWN) for check in canaries)
        highest = None if audit.combined is None else audit.combined.max_exposure
        exposure = "–" if highest is None else f"{highest:.2f} bits"
        outcome = NO_WORSE if verdict.outcome is Outcome.KNOWN else verdict.outcome
        model, why = audit.model.translate(_MARKDOWN), verdict.text.translate(_MARKDOWN)
        rows.append((model, outcome, f"{failed} of {len(canaries)}", exposure, why))
    return _summary("Canary audit", ("model", "verdict", "canaries failed:", "highest exposure:", "why"), rows)


def memory_summary(maps: Sequence[MemoryMap]) -> str:
    """The Markdown table of memory maps for the step summary."""
    rows = [
        (
            memory_map.model.translate(_MARKDOWN),
            NO_WORSE if memory_map.baseline == "known" else memory_map.verdict or "no limit",
            *(f"{count:,}" for count in (memory_map.memorised, memory_map.tested, memory_map.held_out)),
            f"{len(memory_map.places):,}",
            " ".join(memory_sentences(memory_map)).translate(_MARKDOWN),
        )
        for memory_map in maps
    ]
    return _summary("Memory map", ("model", "verdict", "memorised:", "of:", "held out:", "places:", "why"), rows)


def _summary(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table under a title; the columns whose names end in a colon have figures."""
    names, *lines = (" | ".join(cells) for cells in ([name.removesuffix(":") for name in head], *rows))
    rule = "|".join("--:" if name.endswith(":") else "---" for name in head)
    return f"### {title}\n\n| {names} |\n|{rule}|\n" + "".join(f"| {line} |\n" for line in lines) + "\n"


def _annotation(check: Check, file: ResultFile | None) -> str:
    settings = {"title": f"{check.model}: {check.name}"}
    if file is not None:
        settings = {"file": file.uri, "line": str(file.line(check.number))} | settings
    escaped = {name: _data(value).replace(":", "%3A").replace(",", "%2C") for name, value in settings.items()}
    listed = ",".join(f"{name}={value}" for name, value in escaped.items())
    return f"::{_COMMANDS[check.outcome]} {listed}::{_data(check.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
