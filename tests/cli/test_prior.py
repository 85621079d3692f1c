"""What a chain of runs may say: of the first checkpoint's past, of the corpus, and of what each run hid."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.files.private import PRIVATE, beside
from tests.cli.conftest import Atdp, Ended, Harden

TRAIN = ("--recipe", "dp-sgd", "--epochs", 1, "--set", "run.max-records=60", "--json", "-q")
HIDE = (
    "--recipe",
    "redacted",
    "--epochs",
    1,
    "--set",
    "run.max-records=60",
    "--json",
    "-q",
    "--checkpoint-history",
    "public",
)


def ledger(folder: Path) -> Any:
    return json.loads((folder / "privacy_ledger.json").read_text())


def by_scope(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    return {each["scope"]: each for each in ended.json["guarantees"]}


@pytest.fixture
def again(atdp: Atdp, tmp_path: Path) -> Harden:
    """Harden what is in `out` once more."""

    def run(data: Path, *options: object, model: str = "out", out: str = "again") -> Ended:
        named = ("--data", data, "-o", tmp_path / out, "--set", "run.threads=1", "--set", "run.insecure-seed=1")
        return atdp("harden", tmp_path / model, *named, *options)

    return run


@pytest.mark.ci
def test_public_cannot_be_said_of_a_past_that_the_ledger_does_not_know(
    harden: Harden, again: Any, corpus: Path
) -> None:
    assert harden(*TRAIN).code == 0
    refused = again(corpus, *TRAIN, "--checkpoint-history", "public")
    assert refused.code == 2
    assert "contradicts the ledger beside the checkpoint" in " ".join(refused.err.split())
    assert by_scope(again(corpus, *TRAIN))["end_to_end"]["epsilon"] == "inf"


@pytest.mark.ci
def test_public_was_said_of_one_corpus_alone(harden: Harden, again: Any, corpus: Path, tmp_path: Path) -> None:
    assert harden(*TRAIN, "--checkpoint-history", "public").code == 0
    same = by_scope(again(corpus, *TRAIN, out="same"))
    assert same["end_to_end"]["epsilon"] != "inf"
    assert len({event["relation"]["corpus"] for event in ledger(tmp_path / "same")["events"]}) == 1
    other = tmp_path / "other.txt"
    other.write_text("".join(f"{line} again\n" for line in corpus.read_text().splitlines()))
    unsaid = by_scope(again(other, *TRAIN, out="unsaid"))
    assert unsaid["end_to_end"]["epsilon"] == "inf"
    said = by_scope(again(other, *TRAIN, "--checkpoint-history", "public", out="said"))
    assert said["end_to_end"]["epsilon"] != "inf"
    assert len({event["relation"]["corpus"] for event in ledger(tmp_path / "said")["events"]}) == 2


@pytest.mark.ci
def test_without_the_key_nobody_knows_that_the_corpus_is_the_same(
    harden: Harden, again: Any, corpus: Path, tmp_path: Path
) -> None:
    assert harden(*TRAIN, "--checkpoint-history", "public").code == 0
    shutil.rmtree(beside(tmp_path / "out", PRIVATE))
    assert by_scope(again(corpus, *TRAIN))["end_to_end"]["epsilon"] == "inf"


@pytest.mark.ci
@pytest.mark.parametrize("second", [pytest.param("redacted", marks=pytest.mark.deep), "redacted+dp-sgd"])
def test_a_second_run_with_another_tier_has_no_selective_guarantee(
    harden: Harden, again: Any, corpus: Path, tmp_path: Path, second: str
) -> None:
    """Values that the second tier alone flags were read by the first run as they are."""
    assert "selective" in by_scope(harden(*HIDE, "--tier", "low-entity"))
    options = ("--recipe", second, *HIDE[2:])
    assert "selective" in by_scope(again(corpus, *options, "--tier", "low-entity", out="same"))
    ended = again(corpus, *options, "--tier", "high-entity", out="wider")
    assert "selective" not in by_scope(ended)
    said = " ".join(json.loads((tmp_path / "wider" / "privacy_report.json").read_text())["verdict"])
    assert "do not flag the same: one has tier low-entity, the other high-entity" in said


@pytest.mark.ci
def test_a_reference_that_hid_by_another_tier_voids_it_too(
    harden: Harden, again: Any, corpus: Path, tmp_path: Path, checkpoint_folder: Path
) -> None:
    assert harden(*HIDE, "--tier", "low-entity").code == 0
    anchored = ("--recipe", "redacted+anchored", *HIDE[2:], "--reference", tmp_path / "out")
    shutil.copytree(checkpoint_folder, tmp_path / "base")
    same = again(corpus, *anchored, "--tier", "low-entity", model="base", out="same")
    assert "selective" in by_scope(same)
    wider = again(corpus, *anchored, "--tier", "high-entity", model="base", out="wider")
    assert "selective" not in by_scope(wider)
