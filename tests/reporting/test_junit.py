"""JUnit XML of an audit."""

import xml.etree.ElementTree as ET

from atdp_cli.audit.results import AnyAudit
from atdp_cli.reporting.ci.baseline import make_baseline, new_failures
from atdp_cli.reporting.ci.checks import checked
from atdp_cli.reporting.ci.formats import junit
from tests.reporting.entries import INNOCENT, audit_of, unfinished


def _parsed(*audits: AnyAudit) -> ET.Element:
    return ET.fromstring(junit([checked(audit) for audit in audits], "audit-canary").encode("utf-8"))  # noqa: S314 - our own


def test_a_suite_a_model_and_a_case_a_canary_with_the_verdict() -> None:
    root = _parsed(audit_of("runs/a", 1, *INNOCENT), audit_of("runs/b", *INNOCENT))
    assert [suite.get("name") for suite in root] == ["runs/a", "runs/b"]
    cases = list(root[0].iter("testcase"))
    assert [case.get("name") for case in cases] == [*(f"canary {number}" for number in range(1, 12)), "verdict"]
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["canary 1", "verdict"]
    assert {case.get("classname") for case in cases} == {"runs/a"}
    failure = cases[0].find("failure")
    assert failure is not None
    assert "Rank 1 of 100,000, exposure 16.61 bits" in (failure.get("message") or "")
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("23", "2", "0", "0")


def test_inconclusive_is_skipped_with_its_reasons_and_an_error_is_an_error() -> None:
    root = _parsed(audit_of("runs/a", 1, mismatch="Other tokens."), unfinished("runs/b"))
    assert [element.get("message") for element in root[0].iterfind("testcase[@name='verdict']/skipped")] != []
    verdict = root[0].find("testcase[@name='verdict']/skipped")
    assert verdict is not None
    assert (verdict.get("message") or "").startswith("Other tokens.")
    assert root.find(".//failure") is None
    (error,) = root[1].iter("error")
    assert error.text == "It is <damaged> & done."


def test_a_failure_that_the_baseline_knows_is_skipped() -> None:
    failed = audit_of("runs/a", 1, *INNOCENT)
    root = _parsed(new_failures(failed, make_baseline([failed])))
    assert root.get("failures") == "0"
    assert {case.get("name") for case in root.iter("testcase") if case.find("skipped") is not None} == {
        "canary 1",
        "verdict",
    }


def test_names_that_xml_cannot_hold() -> None:
    root = _parsed(audit_of("runs/\x00\udcff<&\"'", *INNOCENT))
    assert root[0].get("name") == "runs/\ufffd\ufffd<&\"'"
