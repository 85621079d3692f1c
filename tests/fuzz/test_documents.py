"""Manifests, ledgers, journals, reports, audits and baselines that were tampered with."""

import json
from pathlib import Path

import pytest

from atdp_cli.audit.manifest import Manifest, PlantedCanary, read_manifest
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import DeclaredTraining, DecoyedText, PlainTraining, ReadModel, read_verified, write_ledger
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.ci.baseline import make_baseline, new_failures, read_baseline
from atdp_cli.reporting.document import public_of
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.write import as_json, read_audits, read_report, with_audits
from tests.fuzz.damage import altered, damaged, json_of, node_of, noise, text_of
from tests.fuzz.survival import INPUTS, SECRET, Choices, survive
from tests.privacy.ledgers import ledger, release, steps
from tests.privacy.relations import relation
from tests.reporting.documents import private, public
from tests.reporting.entries import audit_of

MANIFEST = Manifest(
    schema_version=1,
    kind="atdp-canaries",
    template="The code of {choice:names.txt} is {digits:6}",
    choices={"names.txt": (SECRET, "Another one")},
    canaries=(
        PlantedCanary(secret=(SECRET, "493021"), planted=True, repeats=2, token_ids=(5, 6, 7), positions=(1, 4)),
        PlantedCanary(
            secret=("Another one", "493021"),
            planted=False,
            repeats=1,
            token_ids=(5, 6),
            positions=(2,),
            other=(SECRET, "493022"),
        ),
    ),
    tokenizer_sha256="0" * 64,
    records=9,
    coins=True,
    drawn="csprng",
).model_dump_json()

EVENTS = (
    PlainTraining(stage="redacted", text="redacted", relation=hypothetical()),
    ReadModel(stage="anchored", past="public", weights={"model.safetensors": "ab"}),
    steps(0.1, 1.5, 7),
    release(9.0),
    DecoyedText(run="0e", stage="decoys", copies=2, relation=relation("shape")),
    DeclaredTraining(stage="declared", corpora=("0e",), weights={"model.safetensors": "ab"}),
)

AUDITED = audit_of("models/one", 3, 40_001, 5, max_exposure=3.0).model_copy(
    update={"weights": {"model.safetensors": "ab12"}}
)
"""Weights are those of the report."""
AUDIT = json.dumps({"models": [AUDITED.model_dump(mode="json")]})


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_manifests(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "canaries.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        read_manifest(path).targets()

    survive(
        inputs,
        [json_of(MANIFEST), json_of(MANIFEST), damaged(MANIFEST.encode()), noise],
        read,
        valid=[MANIFEST.encode()],
    )


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_ledgers(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "privacy_ledger.json"
    write_ledger(path, ledger(*EVENTS, run="0f"))
    written = path.read_text()
    (tmp_path / "model.safetensors").write_bytes(b"weights")

    def read(content: bytes) -> None:
        path.write_bytes(content)
        read_verified(path)

    survive(inputs, [json_of(written), json_of(written), damaged(written.encode()), noise], read, valid=[])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_journals(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with open_journal(path) as journal:
        for event in EVENTS:
            spend(journal, event)
    written = path.read_bytes()
    nodes = [node_of(json.loads(line)) for line in written.splitlines()]

    def altered_lines(choices: Choices) -> bytes:
        return "\n".join(text_of(altered(choices, choices.of(nodes))) for _ in range(choices.below(4))).encode()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        read_journal(path)

    survive(inputs, [altered_lines, altered_lines, damaged(written), noise], read, valid=[written])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_reports(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "privacy_report.json"
    written = [as_json(report) for report in (public(), private())]

    def read(content: bytes) -> None:
        path.write_bytes(content)
        report = read_report(path)
        render_html(report)
        render_card(public_of(report))

    survive(
        inputs,
        [json_of(*written), json_of(*written), damaged(*map(str.encode, written)), noise],
        read,
        valid=map(str.encode, written),
    )


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_audits(inputs: int, tmp_path: Path) -> None:
    path, report = tmp_path / "audit.json", public()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        as_json(with_audits(report, read_audits(path)))

    survive(inputs, [json_of(AUDIT), json_of(AUDIT), damaged(AUDIT.encode()), noise], read, valid=[AUDIT.encode()])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_baselines(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    written = make_baseline([AUDITED]).model_dump_json()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        new_failures(AUDITED, read_baseline(path))

    survive(
        inputs, [json_of(written), json_of(written), damaged(written.encode()), noise], read, valid=[written.encode()]
    )
