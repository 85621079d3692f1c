"""Malformed inputs over all commands: each with its exit code and the one line that it ends with."""

import shutil
import time
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from tests.cli.badinput import beside, configurations, corpora, ledgers, manifests, options, weights
from tests.cli.badinput.case import SECRET, Case, assert_one_line
from tests.cli.conftest import Atdp

CASES = tuple(
    case for table in (weights, configurations, corpora, beside, manifests, ledgers, options) for case in table.CASES
)

SECONDS = 10.0
"""Of processor time: how long the clock runs is the machine's affair, where tests run side by side."""


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str]) -> Path:
    """A folder with a model, and a corpus that holds the secret."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("".join(f"{SECRET} {line}\n" for line in lines[:40]))
    return tmp_path


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> None:
    """The libraries, whose loading is no row's time."""
    corpus = tmp_path_factory.mktemp("loaded") / "corpus.txt"
    corpus.write_text("Emma is here.\n" * 40)
    assert (
        run(["harden", str(checkpoint_folder), "--data", str(corpus), "--dry-run", "--set", "run.store=none", "-q"])
        == 0
    )


def listing(place: Path) -> dict[Path, bytes]:
    """All that lies in a folder, byte for byte."""
    return {file: file.read_bytes() if file.is_file() else b"" for file in place.rglob("*")}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_ends_with_one_line(case: Case, place: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch) -> None:
    case.make(place)
    monkeypatch.chdir(place)
    before, began = listing(place), time.process_time()
    ended = atdp(*case.command)
    assert time.process_time() - began < SECONDS
    assert_one_line(ended.err, case)
    assert "\n" not in case.said
    assert SECRET not in case.said
    assert ended.code == case.code
    assert ended.out == ""
    assert listing(place) == before
