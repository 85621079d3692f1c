"""What ships, merged, int8 or int4, is audited beside what was trained: of a model that leaks, and of a clean one."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from atdp_cli.audit.manifest import Manifest, read_manifest
from atdp_cli.cli.app import run
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp
from tests.quantised import WIDTHS, quantise, weight_only, write_llama

pytest.importorskip("torchao", reason="torchao is not installed: make test-quantised")


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """Folders: fp32, int8 and int4 of both, and the manifest."""

    clean: tuple[Path, ...]
    leaking: tuple[Path, ...]
    corpus: Path
    manifest: Path


def drilled(model: Path, manifest: Manifest, out: Path) -> Path:
    """The model after it has read nothing but the canaries."""
    loaded = load_checkpoint(model)
    rows = [torch.tensor([canary.token_ids]) for canary in manifest.canaries]
    adam = torch.optim.Adam(loaded.model.parameters(), lr=5e-3)
    for _ in range(60):
        adam.zero_grad()
        sum(loaded.model(ids, labels=ids).loss for ids in rows).backward()
        adam.step()
    save_checkpoint(loaded.model, loaded.tokenizer, out, "float32")
    return out


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory, corpus: Path, lines: list[str], fixed_manifest: Path) -> Shipped:
    folder = tmp_path_factory.mktemp("shipped")
    clean, planted, manifest = write_llama(folder / "clean", lines), folder / "planted.txt", folder / "canaries.json"
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", manifest, "--tokenizer", clean]
    assert run([str(part) for part in [*plant, "--from", fixed_manifest, "-q"]]) == 0
    leaking = drilled(clean, read_manifest(manifest), folder / "leaking")

    def versions(model: Path) -> tuple[Path, ...]:
        for width in WIDTHS:
            quantise(model, folder / f"{model.name}-{width}", weight_only(width))
        return (model, *(folder / f"{model.name}-{width}" for width in WIDTHS))

    return Shipped(clean=versions(clean), leaking=versions(leaking), corpus=planted, manifest=manifest)


def test_a_leak_is_found_in_every_version_and_none_in_the_clean_ones(atdp: Atdp, shipped: Shipped) -> None:
    models = [*shipped.leaking, *shipped.clean]
    ended = atdp("audit-canary", *models, "--manifest", shipped.manifest, "--json")
    assert ended.code == 1
    audits = ended.json["models"]
    assert [audit["verdict"] for audit in audits] == ["FAIL"] * 3 + ["PASS"] * 3
    leaking = [audit["combined"]["mean_exposure"] for audit in audits[:3]]
    assert min(leaking) > 6
    assert max(leaking) - min(leaking) < 2
    hashes = [audit["weights"]["model.safetensors"] for audit in audits]
    assert len(set(hashes)) == 6


def test_the_report_lists_each_version_with_its_hash_and_verdict(atdp: Atdp, shipped: Shipped, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        "harden",
        shipped.clean[0],
        "--data",
        shipped.corpus,
        "-o",
        out,
        *line("--recipe no-dp --epochs"),
        1,
        "-q",
    ]
    assert atdp(*command).code == 0
    for width in WIDTHS:
        quantise(out, tmp_path / width, weight_only(width))
    models = [out, *(tmp_path / width for width in WIDTHS), shipped.leaking[2]]
    audited = atdp("audit-canary", *models, "--manifest", shipped.manifest, "--json", "-q")
    (tmp_path / "audit.json").write_text(audited.out)
    ended = atdp("report", out, "--audit", tmp_path / "audit.json", "--publish-audits")
    assert ended.code == 0, ended.err
    report = json.loads((out / "privacy_report.json").read_text())
    digests = [model["weights"]["model.safetensors"] for model in audited.json["models"]]
    entries = [(audit["of"], audit["weights"]["model.safetensors"]) for audit in report["audits"]]
    assert entries[0] == ("after", digests[0])
    # The worst of the others comes first.
    assert set(entries[1:]) == {("other", digest) for digest in digests[1:]}
    assert re.search(r"Other models that were audited with it: PASS \d, FAIL [1-3]", report["summary"]["audit"])
    page, card = ((out / name).read_text() for name in ("privacy_report.html", "README.md"))
    for digest in digests:
        assert f"<code>{digest[:12]}</code>" in page
        assert digest[:12] in card
        assert digest[:12] in ended.out


def test_the_map_of_a_corpus_reads_them_too(atdp: Atdp, shipped: Shipped) -> None:
    options = ["--data", shipped.corpus, "--harden-split", "--set", "run.store=none", "--json"]
    ended = atdp("audit-corpus", *shipped.leaking, *options)
    assert ended.code == 0, ended.err
    actual = ended.json["models"]
    assert len({entry["weights"]["model.safetensors"] for entry in actual}) == 3
    assert all(entry["tested"] > 0 for entry in actual)


def test_a_merged_adapter_is_a_model_like_any_other(atdp: Atdp, shipped: Shipped, tmp_path: Path) -> None:
    """The same exposures as the adapter beside its base, up to rounding of the scores."""
    adapter = tmp_path / "adapter"
    command = ["harden", shipped.clean[0], "--data", shipped.corpus, "-o", adapter, "--recipe", "no-dp", "-q"]
    assert atdp(*command, "--lora-rank", 8, "--epochs", 1, "--learning-rate", "2e-2").code == 0
    loaded = load_checkpoint(adapter)
    save_checkpoint(merged(loaded.model), loaded.tokenizer, tmp_path / "merged", "float32")
    quantise(tmp_path / "merged", tmp_path / "int8", weight_only("int8"))
    models = [adapter, tmp_path / "merged", tmp_path / "int8"]
    audits = atdp("audit-canary", *models, "--manifest", shipped.manifest, "--json").json["models"]
    exposures = [[canary["exposure"] for canary in audit["canaries"]] for audit in audits]
    assert exposures[0] == pytest.approx(exposures[1], abs=0.05)
    assert {audit["verdict"] for audit in audits} <= {"PASS", "FAIL"}


def test_harden_and_a_reference_are_never_quantised(atdp: Atdp, shipped: Shipped, tmp_path: Path) -> None:
    quantised = shipped.leaking[1]
    refused = atdp("harden", quantised, "--data", shipped.corpus, "-o", tmp_path / "out")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "says that the weights are quantised" in refused.err
    assert not list(tmp_path.iterdir())
    of_reference = atdp(
        "audit-canary", shipped.clean[0], "--manifest", shipped.manifest, "--reference", quantised, "--json"
    )
    assert of_reference.code == 2
