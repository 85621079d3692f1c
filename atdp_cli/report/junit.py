"""The audit as JUnit XML: a testsuite a model, a testcase a canary and one for the verdict."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from atdp_cli.report.audited import Check, Entry, Outcome, checks_of

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {
    Outcome.FAIL: "failure",
    Outcome.KNOWN: "skipped",
    Outcome.INCONCLUSIVE: "skipped",
    Outcome.ERROR: "error",
}
_COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(entries: Sequence[Entry]) -> str:
    """The document. A failure that the baseline knows is skipped, as is what is inconclusive."""
    root = ET.Element("testsuites", name="atdp audit-canary")
    for entry in entries:
        suite = ET.SubElement(root, "testsuite", name=_plain(entry["model"]))
        for part in checks_of(entry):
            _testcase(suite, part)
        _count(suite)
    _count(root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _testcase(suite: ET.Element, part: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname=_plain(part.model), name=part.name)
    says = _plain(part.says)
    if part.outcome is Outcome.KNOWN:
        says = f"Fails, no worse than the baseline. {says}"
    if element := _ELEMENTS.get(part.outcome):
        ET.SubElement(case, element, message=says).text = None if element == "skipped" else says
    else:
        ET.SubElement(case, "system-out").text = says


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, kind in _COUNTS.items():
        element.set(name, str(len(list(element.iter(kind)))))


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
