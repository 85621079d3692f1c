"""The span store as commands use it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.detection import run as text
from atdp_cli.detection.cache import SPANS
from atdp_cli.detection.scan import load_pipeline
from tests.cli.conftest import Atdp
from tests.detection.test_cache import Counting

LINES = [f"Emma Clarke {n} met Tom Jones in Berlin and mailed emma{n}@example.org." for n in range(100)]


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text("".join(f"{line}\n\n" for line in LINES))
    return path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Counting]:
    """The pipeline that the commands load, which counts what it reads."""
    counting = Counting(load_pipeline())
    monkeypatch.setattr(text, "load_pipeline", lambda name: counting)
    return [counting]


def outputs(atdp: Atdp, corpus: Path, folder: Path, *options: object) -> Iterator[bytes]:
    """What detecting at two tiers and redacting with lists write."""
    folder.mkdir()
    deny = folder / "deny.txt"
    deny.write_text("met\n")
    commands: list[list[object]] = [
        ["detect", corpus, "--tier", "low-entity"],
        ["detect", corpus, "--tier", "high-contextual"],
        ["redact", corpus, "--deny", deny],
    ]
    for number, command in enumerate(commands):
        output = folder / f"{number}{corpus.suffix}"
        ended = atdp(*command, "-o", output, *options)
        assert ended.code == 0, ended.err
        yield output.read_bytes()


@pytest.mark.ci
def test_another_tier_and_redact_read_the_store(atdp: Atdp, corpus_file: Path, tmp_path: Path, read: list[Any]) -> None:
    stored = []
    for output in outputs(atdp, corpus_file, tmp_path / "with"):
        stored.append(output)
        assert read[0].texts == len(LINES)
    folder = tmp_path / "mail.txt.private"
    assert SPANS.database in {file.name for file in folder.iterdir()}
    assert stored == list(outputs(atdp, corpus_file, tmp_path / "without", "--set", "run.store=none"))
    assert read[0].texts == 4 * len(LINES)


def test_no_store_leaves_nothing_behind(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    assert atdp("detect", corpus_file, "--json", "--set", "run.store=none").code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["mail.txt"]
