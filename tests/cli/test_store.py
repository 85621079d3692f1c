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
    assert {SPANS.database, SPANS.key} <= {file.name for file in folder.iterdir()}
    assert stored == list(outputs(atdp, corpus_file, tmp_path / "without", "--store", "none"))
    assert read[0].texts == 4 * len(LINES)


def test_a_line_that_changed_is_read_again(atdp: Atdp, corpus_file: Path, tmp_path: Path, read: list[Any]) -> None:
    out = tmp_path / "spans.jsonl"
    atdp("detect", corpus_file, "-o", out)
    corpus_file.write_text("A new line about Maria.\n" + corpus_file.read_text())
    assert atdp("detect", corpus_file, "-o", out, "--force", "--set", "run.workers=1").code == 0
    assert read[0].texts == len(LINES) + 1


def test_the_store_goes_where_it_is_told(atdp: Atdp, corpus_file: Path, tmp_path: Path, read: list[Any]) -> None:
    folder = tmp_path / "elsewhere.private"
    for _ in range(2):
        assert atdp("detect", corpus_file, "--store", folder, "--json").code == 0
    assert read[0].texts == len(LINES)
    assert (folder / SPANS.database).is_file()
    assert not (tmp_path / "mail.txt.private").exists()


def test_no_store_leaves_nothing_behind(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    assert atdp("detect", corpus_file, "--json", "--store", "none").code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["mail.txt"]


def test_a_store_that_cannot_be_used_is_reported_and_not_used(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mail.txt.private").write_text("a file")
    ended = atdp("detect", corpus_file, "--json")
    assert ended.code == 0
    assert ended.json["records"] == len(LINES)
    assert ended.err.count("span store: ") == 1
    assert "without it and not kept" in ended.err


def test_rows_that_are_skipped_are_skipped_again(atdp: Atdp, tmp_path: Path, read: list[Any]) -> None:
    corpus = tmp_path / "chats.csv"
    corpus.write_text("id,text\na,Mail Emma Clarke.\nbad\nb,Nothing here.\n")
    for run in range(2):
        ended = atdp("redact", corpus, "-o", tmp_path / "out.csv", "--skip-bad", "--json", "--force")
        assert (ended.json["records"], ended.json["skipped"]) == (2, 1)
        assert (tmp_path / "out.csv").read_text().splitlines()[0] == "id,text", run
    assert read[0].texts == 2
