"""Canary manifests, templates, and files of the audit."""

import json
from typing import Any

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write

CANARY = {"secret": ["12"], "planted": True, "repeats": 1, "token_ids": [1, 2], "positions": [3]}

MANIFEST = {
    "schema_version": 1,
    "kind": "atdp-canaries",
    "template": f"{SECRET} {{digits:2}}",
    "choices": {},
    "canaries": [CANARY],
    "tokenizer_sha256": "0" * 64,
    "records": 40,
    "coins": False,
    "drawn": "csprng",
}

BASELINE = {"schema_version": 1, "kind": "atdp-audit-baseline", "models": {}}


def manifest(*canaries: dict[str, Any], **members: Any) -> Make:
    """A manifest that is right but for what is said."""
    return write("m.json", json.dumps(MANIFEST | {"canaries": [CANARY | canary for canary in canaries]} | members))


AUDIT = line("audit-canary model --manifest m.json")

PLANT = line("plant-canary corpus.txt -o out --manifest m.json --tokenizer model")


CASES = (
    *cases(
        AUDIT,
        {
            "manifest a link to itself": (
                "The canary manifest m.json cannot be read: Too many",
                link("m.json", "m.json"),
            ),
            "manifest of a pool without end": (
                "malformed at the file",
                manifest({"secret": ["1" * 400]}, template="{digits:400}"),
            ),
        },
    ),
    Case(
        "choices that hold a line twice",
        (*PLANT, "--template", "{choice:c.txt}"),
        "The file of choices c.txt holds a line twice",
        write("c.txt", f"{SECRET}\n" * 2),
    ),
    Case("canaries by the billion", (*PLANT, "--count", "1000000000"), "1000000000 canaries cannot be planted"),
    Case(
        "repeats by the billion",
        (*PLANT, "--repeats", "1000000000"),
        "The canaries would be in more than 1,000,000 records",
    ),
    *cases(
        (*AUDIT, "--baseline", "b.json"),
        {
            "baseline cut": ("malformed at the file: Invalid JSON", both(manifest({}), write("b.json", "{"))),
            "baseline of NaN": (
                "malformed at models.m.RecordedAudit: Input should be an",
                both(manifest({}), write("b.json", json.dumps(BASELINE | {"models": {"m": float("nan")}}))),
            ),
        },
    ),
    Case(
        "two reports in one file",
        (*AUDIT, "--junit", "a.xml", "--sarif", "./a.xml"),
        "a.xml is to be written twice",
        manifest({}),
    ),
)
