"""The JSON schemas that are shipped: what the models say, and what reports satisfy."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from atdp_cli.audit.results import AuditDocument
from atdp_cli.reporting.document import PrivateReport, PublicReport
from tests.generated import schemas
from tests.reporting.documents import RAW, RELEASE, private, public
from tests.reporting.rich_audit import audits

REPORTS: list[tuple[str, PublicReport | PrivateReport]] = [
    ("privacy_report", public()),
    ("privacy_report", public(RAW, RELEASE, audits=(), sentence=(), epsilon=None, stages=())),
    ("private_report", private()),
]


def schema(kind: str) -> dict[str, Any]:
    [actual] = [json.loads(path.read_text()) for path in schemas() if path.name == f"{kind}.schema.json"]
    return dict(actual)


def test_an_audit_satisfies_its_schema() -> None:
    Draft202012Validator.check_schema(schema("audit"))
    validator = Draft202012Validator(schema("audit"))
    document = AuditDocument(models=audits()).model_dump(mode="json")
    assert not list(validator.iter_errors(document))
    assert AuditDocument.model_validate(document).model_dump(mode="json") == document
    for field in ("gate", "combined", "baseline"):
        broken = json.loads(json.dumps(document))
        del broken["models"][0][field]
        assert list(validator.iter_errors(broken)), field
    for changes in (
        {"verdict": "GOOD"},
        {"secret": "1"},
        {"canaries": [document["models"][0]["canaries"][0] | {"rank_min": 0}]},
    ):
        assert list(validator.iter_errors(document | {"models": [document["models"][0] | changes]})), changes


@pytest.mark.parametrize(("kind", "report"), REPORTS)
def test_reports_satisfy_their_schema(kind: str, report: PublicReport | PrivateReport) -> None:
    Draft202012Validator.check_schema(schema(kind))
    validator = Draft202012Validator(schema(kind))
    document = json.loads(report.model_dump_json())
    assert not list(validator.iter_errors(document))
    assert type(report).model_validate(document) == report
    broken: dict[str, Any]
    for broken in (document | {"more": 1}, document | {"kind": "other"}, {}):
        assert list(validator.iter_errors(broken))
