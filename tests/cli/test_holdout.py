"""Perplexity is measured on whole conversations."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp


def perplexity(folder: Path) -> float:
    report = json.loads((folder / "privacy_report.json").read_text())
    return float(report["perplexity"]["before"]["all"])


@pytest.mark.ci
def test_conversations_are_held_out_whole(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    lines = [line for line in corpus.read_text().splitlines() if line.strip()][:90]
    chats = tmp_path / "chats.txt"
    chats.write_text("\n\n".join("\n".join(lines[at : at + 3]) for at in range(0, 90, 3)) + "\n")
    valid, rest = tmp_path / "valid.txt", tmp_path / "rest.txt"
    valid.write_text("\n".join(lines[57:60]) + "\n")
    rest.write_text("\n".join(lines[:57] + lines[60:]) + "\n")
    run = ("harden", checkpoint_folder, "--recipe", "base", "-q")
    assert atdp(*run, "--data", chats, "--set", "run.holdout-by=blank-line", "-o", tmp_path / "by").code == 0
    assert atdp(*run, "--data", rest, "--eval-data", valid, "-o", tmp_path / "given").code == 0
    assert perplexity(tmp_path / "by.private") == perplexity(tmp_path / "given.private")
    report = json.loads((tmp_path / "by" / "privacy_report.json").read_text())
    assert (report["records"], report["held_out"]) == (87, 3)
    refused = atdp(*run, "--data", chats, "--set", "run.holdout-by=user", "-o", tmp_path / "no")
    assert refused.code == 2
    assert "run.holdout-by=user names a field" in " ".join(refused.err.split())
