"""SARIF of an audit: what the specification, section 3, requires of the properties used, checked by hand."""

import json
from typing import Any

from atdp_cli.audit.results import AnyAudit
from atdp_cli.reporting.ci.baseline import make_baseline, new_failures
from atdp_cli.reporting.ci.checks import ResultFile, canary_lines, checked
from atdp_cli.reporting.ci.formats import sarif
from tests.reporting.entries import INNOCENT, audit_of, unfinished

MANIFEST = ResultFile(uri="canaries.json", lines=(6, 20))


def check_sarif(log: dict[str, Any]) -> None:
    """Only properties that SARIF 2.1.0 knows, with their types, and all that it requires."""
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run.keys() == {"tool", "invocations", "results"}
    driver = run["tool"]["driver"]
    assert driver.keys() == {"name", "version", "rules"}
    assert (driver["name"], type(driver["version"])) == ("atdp", str)
    assert all(isinstance(invocation["executionSuccessful"], bool) for invocation in run["invocations"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
    fingerprints = [json.dumps(result["partialFingerprints"]) for result in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)
    for result in run["results"]:
        required = {"ruleId", "ruleIndex", "level", "message", "partialFingerprints"}
        assert required <= result.keys() <= required | {"locations", "baselineState"}
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result.get("baselineState", "new") in {"new", "unchanged", "updated", "absent"}
        assert result["message"]["text"]
        for location in result.get("locations", ()):
            place = location["physicalLocation"]
            assert place["artifactLocation"].keys() == {"uri"}
            assert place["region"]["startLine"] >= 1


def _results(*audits: AnyAudit, manifest: ResultFile | None = MANIFEST) -> list[dict[str, Any]]:
    log = sarif([checked(audit, manifest) for audit in audits], "1.0")
    check_sarif(log)
    return list(log["runs"][0]["results"])


def test_a_failing_canary_points_at_its_entry() -> None:
    first, verdict = _results(audit_of("runs/a", 50_000, 1, *INNOCENT))
    assert (first["ruleId"], first["level"]) == ("canary-remembered", "error")
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "canaries.json"}, "region": {"startLine": 20}}
    assert first["message"]["text"].startswith("runs/a, canary 2: Rank 1 of 100,000")
    assert verdict["ruleId"] == "model-remembers"
    assert _results(audit_of("runs/a", *INNOCENT)) == []


def test_levels() -> None:
    failed = audit_of("runs/a", 1, *INNOCENT)
    known = _results(new_failures(failed, make_baseline([failed])))
    assert {(result["level"], result["baselineState"]) for result in known} == {("note", "unchanged")}
    (doubtful,) = _results(audit_of("runs/a", 1, mismatch="Other tokens."))
    assert (doubtful["ruleId"], doubtful["level"]) == ("inconclusive", "warning")
    (error,) = _results(unfinished("runs/b"))
    assert (error["ruleId"], error["level"]) == ("not-audited", "error")
    assert not sarif([checked(unfinished("runs/b"))], "1")["runs"][0]["invocations"][0]["executionSuccessful"]


def test_a_typed_canary_has_no_location() -> None:
    assert all("locations" not in result for result in _results(audit_of("a", 1, *INNOCENT), manifest=None))


def test_the_lines_of_the_entries() -> None:
    known = {"kind": "x", "canaries": [{"secret": "]1", "a": [1, 2]}, {"secret": "\u2028\n"}], "records": 3}
    assert canary_lines(json.dumps(known)) == (1, 1)
    for indent in (0, 1, "\t"):
        text = json.dumps(known, indent=indent, ensure_ascii=False)
        lines = text.split("\n")
        actual = canary_lines(text)
        assert len(actual) == 2
        for number in actual:
            assert lines[number - 1].strip() == "{"
            assert lines[number].strip().startswith('"secret"')
    assert canary_lines('\r\n{\r\n"canaries" : [ ] }') == ()
