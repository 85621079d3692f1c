"""`--speaker-labels` of detect, redact and harden."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp, Harden


def test_redact_leaves_a_stated_label_and_no_other_mention(atdp: Atdp, tmp_path: Path) -> None:
    corpus = tmp_path / "chat.txt"
    corpus.write_text("MARIA: I am Emma Clarke.\n")
    outputs = []
    for number, options in enumerate(([], ["--speaker-labels", "MARIA,TOM"])):
        out = tmp_path / f"{number}.txt"
        assert atdp("redact", corpus, "-o", out, "--tier", "low-entity", *options).code == 0
        outputs.append(out.read_text())
    assert "MARIA" not in outputs[0]
    assert outputs[1].startswith("MARIA: ")
    assert "Emma" not in outputs[1]


def test_what_is_no_label_is_refused_without_a_record(atdp: Atdp, tmp_path: Path) -> None:
    corpus = tmp_path / "chat.txt"
    corpus.write_text("hi\n")
    ended = atdp("detect", corpus, "--speaker-labels", "USR,,ACT")
    assert ended.code == 2
    assert "--speaker-labels has ''" in ended.err


@pytest.mark.ci
def test_a_run_keeps_its_selective_guarantee_and_names_another_detector(harden: Harden, tmp_path: Path) -> None:
    options = ["--recipe", "redacted", "--tier", "low-entity", "--epochs", 1, "--max-records", 20]
    detectors = set()
    for name, labels in (("plain", []), ("stated", ["--speaker-labels", "USR,SYS"])):
        ended = harden(*options, *labels, "--prior", "public", "--json", out=name)
        assert ended.code == 0, ended.err
        assert "selective" in {guarantee["scope"] for guarantee in ended.json["guarantees"]}
        ledger = json.loads((tmp_path / name / "privacy_ledger.json").read_text())
        detectors |= {event["relation"]["flags"]["detector"] for event in ledger["events"] if event.get("relation")}
        recipe = (tmp_path / name / "recipe.toml").read_text()
        assert ('speaker_labels = "SYS,USR"' in recipe) == bool(labels)
    assert len(detectors) == 2
