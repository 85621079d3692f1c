"""`--auto --minutes`: as many epochs as fit, and how many that is depends on no record that ε covers.

The number of epochs is published with the model. The clock of these tests counts floating-point operations, so that
what is measured is the same on every machine and in every run.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from atdp_cli.jobs.harden import preflight
from atdp_cli.report.document import TIMED
from atdp_cli.text.corpus.split import held_out_positions
from tests.cli.conftest import Atdp, Harden

RECORDS = 60


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed takes a microsecond, and one more for each floating-point operation."""

    def operations(work: Callable[[], object]) -> float:
        with FlopCounterMode(display=False) as counter:
            work()
        return float(1 + counter.get_total_flops()) / 1e6

    monkeypatch.setattr(preflight, "_seconds", operations)


def lines(path: Path, *, training: int, held_out: int, seed: int = 1) -> Path:
    """A corpus with so many words in each record."""
    words = random.Random(seed)
    measured = held_out_positions(RECORDS)
    written = [
        " ".join(
            words.choice(["order", "my", "late", "is", "where"])
            for _ in range(held_out if at in measured else training)
        )
        for at in range(RECORDS)
    ]
    path.write_text("\n".join(written) + "\n", encoding="utf-8")
    return path


@pytest.mark.usefixtures("counted")
@pytest.mark.ci
def test_the_epochs_that_fit_are_those_of_any_other_training_records(
    atdp: Atdp, checkpoint_folder: Path, tmp_path: Path
) -> None:
    """Of records of 3 words and of 40, with half the time that all epochs of the first would take."""

    def planned(corpus: Path, *options: object) -> Any:
        asked = ("--auto", "--dry-run", "--json", "--epochs", 9, "--threads", 1, *options)
        ended = atdp("harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", *asked)
        assert ended.code == 0, ended.err
        return ended.json

    def corpus(training: int, held_out: int = 12) -> Path:
        return lines(tmp_path / f"{training}-{held_out}.txt", training=training, held_out=held_out)

    seconds = planned(corpus(3))["estimated_seconds"]
    half = ("--minutes", seconds / 60 / 2)
    for words in (3, 40):
        actual = planned(corpus(words), *half)
        assert [stage["epochs"] for stage in actual["stages"]] == [4], words
        assert planned(corpus(words))["estimated_seconds"] == seconds
    [longer] = planned(corpus(3, held_out=24), *half)["stages"]
    assert longer["epochs"] < 4


@pytest.mark.ci
def test_a_run_says_that_its_epochs_were_timed(harden: Harden, tmp_path: Path) -> None:
    """Only where they were, also where every epoch fits."""
    for out, options in (("timed", ("--minutes", 1000)), ("chosen", ())):
        ended = harden("--auto", "--epochs", 1, "--max-records", 40, *options, out=out)
        assert ended.code == 0, ended.err
        report = json.loads((tmp_path / out / "privacy_report.json").read_text())
        assert (TIMED in report["not_covered"]) is bool(options)
