"""Canary manifests, templates, and files of the audit."""

import json
from typing import Any

from tests.cli.badinput.case import SECRET, Case, Make, both, line, link, write

CANARY = {"secret": ["12"], "planted": True, "repeats": 1, "token_ids": [1, 2], "positions": [3]}

MANIFEST = {
    "schema_version": 2,
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
    Case(
        name="manifest cut",
        make=write("m.json", json.dumps(MANIFEST)[:-30]),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: Invalid JSON: EOF while parsing a string at "
        "line 1 column 312. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest a pickle",
        make=write("m.json", b"\x80\x04cos\nsystem\n."),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: Invalid JSON: expected value at line 1 column "
        "1. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest without end",
        command=line("audit-canary model --manifest /dev/zero"),
        said="The canary manifest /dev/zero cannot be read: Not a regular file. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest a link to itself",
        make=link("m.json", "m.json"),
        command=AUDIT,
        said="The canary manifest m.json cannot be read: Too many levels of symbolic links. Give the file that "
        "plant-canary wrote.",
    ),
    Case(
        name="manifest nested 100,000 deep",
        make=write("m.json", "[" * 100_000),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: Invalid JSON: recursion limit exceeded at line "
        "1 column 202. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest of another version",
        make=manifest({}, schema_version=7),
        command=AUDIT,
        said="The canary manifest m.json is malformed at schema_version: Input should be 2 or 3. Give the file that "
        "plant-canary wrote.",
    ),
    Case(
        name="manifest whose secret is not its template's",
        make=manifest({"secret": [SECRET]}),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: A canary's secret does not fit its template's "
        "slots, {digits:2}. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest with a place twice",
        make=manifest({}, {}),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: Two repeats share a position. Give the file "
        "that plant-canary wrote.",
    ),
    Case(
        name="manifest with tokens below zero",
        make=manifest({"token_ids": [-1]}),
        command=AUDIT,
        said="The canary manifest m.json is malformed at canaries.0.token_ids.0: Input should be greater than or "
        "equal to 0. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest with more repeats than records",
        make=manifest({}, records=0),
        command=AUDIT,
        said="The canary manifest m.json is malformed at records: Input should be greater than 0. Give the file "
        "that plant-canary wrote.",
    ),
    Case(
        name="manifest that says more repeats than places",
        make=manifest({"repeats": 2}),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: A canary has not as many positions as it has "
        "records. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest with a template without a slot",
        make=manifest({}, template=SECRET),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: The canary template has 0 slots, and it must "
        "have 1 to 16. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest of a pool without end",
        make=manifest({"secret": ["1" * 400]}, template="{digits:400}"),
        command=AUDIT,
        said="The canary manifest m.json is malformed at the file: A slot of the canary template has no usable "
        "length: it takes 1 to 64 characters. Give the file that plant-canary wrote.",
    ),
    Case(
        name="manifest to plant from, cut",
        make=write("from.json", "{"),
        command=(*PLANT, "--from", "from.json"),
        said="The canary manifest from.json is malformed at the file: Invalid JSON: EOF while parsing an object "
        "at line 1 column 1. Give the file that plant-canary wrote.",
    ),
    Case(
        name="choices that hold a line twice",
        make=write("c.txt", f"{SECRET}\n" * 2),
        command=(*PLANT, "--template", "{choice:c.txt}"),
        said="The file of choices c.txt holds a line twice. Give 1 to 100,000 choices, one a line, each once.",
    ),
    Case(
        name="choices without end",
        command=(*PLANT, "--template", "{choice:/dev/zero}"),
        said="/dev/zero is not a regular file. Name a regular file; only a corpus may come from a stream.",
    ),
    Case(
        name="slot of no length",
        command=(*PLANT, "--template", "{digits:0}"),
        said="A slot of the canary template has no usable length: it takes 1 to 64 characters. Write it like "
        "{digits:4}.",
    ),
    Case(
        name="slot of an unknown kind",
        command=(*PLANT, "--template", "{runes:4}"),
        said="The canary template has a slot of unknown kind 'runes'. Use {digits:n}, {hex:n}, {letters:n} or "
        "{choice:FILE}.",
    ),
    Case(
        name="canaries by the billion",
        command=(*PLANT, "--count", "1000000000"),
        said="1000000000 canaries cannot be planted. Ask for 1 to 100,000 by --count; ten make a test.",
    ),
    Case(
        name="repeats by the billion",
        command=(*PLANT, "--repeats", "1000000000"),
        said="The canaries would be in more than 1,000,000 records. Correct --repeats or the manifest.",
    ),
    Case(
        name="baseline cut",
        make=both(manifest({}), write("b.json", "{")),
        command=(*AUDIT, "--baseline", "b.json"),
        said="The baseline b.json is malformed at the file: Invalid JSON: EOF while parsing an object at line 1 "
        "column 1. Give the file that --write-baseline wrote.",
    ),
    Case(
        name="baseline of NaN",
        make=both(manifest({}), write("b.json", json.dumps(BASELINE | {"models": {"m": float("nan")}}))),
        command=(*AUDIT, "--baseline", "b.json"),
        said="The baseline b.json is malformed at models.m: Input should be an object. Give the file that "
        "--write-baseline wrote.",
    ),
    Case(
        name="baseline without end",
        make=manifest({}),
        command=(*AUDIT, "--baseline", "/dev/zero"),
        said="The baseline /dev/zero cannot be read: Not a regular file. Give the file that --write-baseline wrote.",
    ),
    Case(
        name="two reports in one file",
        make=manifest({}),
        command=(*AUDIT, "--junit", "a.xml", "--sarif", "./a.xml"),
        said="Two of the files to write are the same. Give each a file of its own.",
    ),
    Case(
        name="attacks unknown",
        make=manifest({}),
        command=(*AUDIT, "--attacks", "telepathy"),
        said="There is no attack 'telepathy'. Choose from extraction,membership,resurfacing.",
    ),
    Case(
        name="resurfacing without text",
        make=manifest({}),
        command=(*AUDIT, "--attacks", "resurfacing"),
        said="Resurfacing fine-tunes a copy of the model on other text, and none was given. Give a text "
        "without the canaries by --other-text.",
    ),
    Case(
        name="numbers of no corpus",
        make=write("s.jsonl", "{}"),
        command=line("audit-canary model --secrets s.jsonl"),
        said="--secrets and --data go together. Give the corpus, and what atdp detect wrote for it.",
    ),
)
