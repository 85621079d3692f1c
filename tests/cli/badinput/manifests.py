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
            "manifest cut": ("malformed at the file: Invalid JSON", write("m.json", json.dumps(MANIFEST)[:-30])),
            "manifest a pickle": ("malformed at the file: Invalid JSON", write("m.json", b"\x80\x04cos\nsystem\n.")),
            "manifest a link to itself": (
                "The canary manifest m.json cannot be read: Too many",
                link("m.json", "m.json"),
            ),
            "manifest nested 100,000 deep": ("malformed at the file: Invalid JSON", write("m.json", "[" * 100_000)),
            "manifest of another version": (
                "malformed at schema_version: Input should be 1",
                manifest({}, schema_version=7),
            ),
            "manifest whose secret is not its template's": ("malformed at the file", manifest({"secret": [SECRET]})),
            "manifest with a place twice": ("malformed at the file: Two repeats share a position", manifest({}, {})),
            "manifest with tokens below zero": ("malformed at canaries.0.token_ids.0", manifest({"token_ids": [-1]})),
            "manifest with more repeats than records": (
                "malformed at records: Input should be greater than 0",
                manifest({}, records=0),
            ),
            "manifest that says more repeats than places": ("malformed at the file", manifest({"repeats": 2})),
            "manifest with a template without a slot": ("malformed at the file", manifest({}, template=SECRET)),
            "manifest of a pool without end": (
                "malformed at the file",
                manifest({"secret": ["1" * 400]}, template="{digits:400}"),
            ),
        },
    ),
    Case(
        "manifest without end",
        line("audit-canary model --manifest /dev/zero"),
        "The canary manifest /dev/zero cannot be read: Not a",
    ),
    Case(
        "manifest to plant from, cut",
        (*PLANT, "--from", "from.json"),
        "malformed at the file: Invalid JSON",
        write("from.json", "{"),
    ),
    Case(
        "choices that hold a line twice",
        (*PLANT, "--template", "{choice:c.txt}"),
        "The file of choices c.txt holds a line twice",
        write("c.txt", f"{SECRET}\n" * 2),
    ),
    Case("choices without end", (*PLANT, "--template", "{choice:/dev/zero}"), "/dev/zero is not a regular file"),
    Case(
        "slot of no length",
        (*PLANT, "--template", "{digits:0}"),
        "A slot of the canary template has no usable length: it",
    ),
    Case(
        "slot of an unknown kind",
        (*PLANT, "--template", "{runes:4}"),
        "The canary template has a slot of unknown kind 'runes'",
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
        "baseline without end",
        (*AUDIT, "--baseline", "/dev/zero"),
        "The baseline /dev/zero cannot be read: Not a regular",
        manifest({}),
    ),
    Case(
        "two reports in one file",
        (*AUDIT, "--junit", "a.xml", "--sarif", "./a.xml"),
        "Two of the files to write are the same",
        manifest({}),
    ),
    Case("attacks unknown", (*AUDIT, "--attacks", "telepathy"), "There is no attack 'telepathy'", manifest({})),
    Case(
        "relearning without text",
        (*AUDIT, "--attacks", "relearning"),
        "Relearning fine-tunes a copy of the model on other",
        manifest({}),
    ),
)
