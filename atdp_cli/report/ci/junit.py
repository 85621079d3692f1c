"""An audit as JUnit XML: a testsuite a model, a testcase a canary or memorised text and one for the verdict."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from atdp_cli.report.ci.checks import Check, CheckedModel, Outcome

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
