"""How long a run took depends on its text: nothing in OUT/ tells when it began, or when anything was before its end."""

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.files.atomic_write import set_one_time
from tests.cli.conftest import Atdp, atdp
from tests.hardening.conftest import bpe, fixed_manifest, place
from tests.hardening.resumption import Place, run

__all__ = ["atdp", "bpe", "fixed_manifest", "place"]


def times(folder: Path) -> set[float]:
    return {path.stat().st_mtime for path in (folder, *folder.rglob("*"))}


def check(folder: Path, since: float) -> None:
    [ended] = times(folder)
    assert ended == int(ended) >= int(since)
    ledger = json.loads((folder / "privacy_ledger.json").read_text())
    assert datetime.fromisoformat(ledger["created"]).timestamp() >= int(since)
    texts = [path.read_text() for path in folder.iterdir() if path.suffix in (".json", ".html", ".md", ".toml")]
    assert not any("seconds" in text or "duration" in text for text in texts)


@pytest.mark.ci
def test_a_run_tells_when_it_ended_alone(place: Place) -> None:
    passed: list[float] = []

    def slow(event: Any) -> None:
        if "Step" in type(event).__name__ and not passed:
            time.sleep(1.1)
            passed.append(time.time())

    done = run(place.request("no-dp"), notify=slow)
    assert done is not None
    check(Path(done.output), passed[0])


@pytest.mark.ci
def test_copies_with_decoys_tell_when_they_were_finished_alone(atdp: Atdp, corpus: Path, tmp_path: Path) -> None:
    begun = time.time()
    ended = atdp(
        "decoy", corpus, "-o", tmp_path / "out", "--epochs", 2, "--recipe", "decoys", "--set", "run.store=none"
    )
    assert ended.code == 0, ended.err
    check(tmp_path / "out", begun)


def test_a_folder_has_one_time_for_all(tmp_path: Path) -> None:
    (tmp_path / "out" / "templates").mkdir(parents=True)
    (tmp_path / "out" / "a").write_text("1")
    time.sleep(0.01)
    (tmp_path / "out" / "templates" / "b").write_text("2")
    assert len(times(tmp_path / "out")) > 1
    set_one_time(tmp_path / "out")
    assert len(times(tmp_path / "out")) == 1
