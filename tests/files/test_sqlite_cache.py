"""The keyed cache: what its files hold, and what happens to them."""

import hmac
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.cache import SPANS, opened_store, pack
from atdp_cli.detection.crosscheck.check import ANSWERS, opened_answers
from atdp_cli.detection.identity import detector_identity
from atdp_cli.detection.scan import Finding
from atdp_cli.files.cache import SqliteCache

TEXT = "Maria met Tom."
FINDING = Finding(Record("1", TEXT), (Span(0, 5, "PERSON", "ner", Tier.LOW_ENTITY),), ((0, 5),), ((0, len(TEXT)),))
SCOPE = (1, "https://example.com/v1", "tiny", True)


def sha256(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def schema(path: Path) -> tuple[list[str], int]:
    with closing(sqlite3.connect(path)) as database:
        tables = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master ORDER BY name")]
        return tables, database.execute("PRAGMA user_version").fetchone()[0]


FINDINGS = "CREATE TABLE findings (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
MADE_WITH = "CREATE TABLE made_with (mark BLOB NOT NULL)"
ASKED = "CREATE TABLE answers (question BLOB PRIMARY KEY, sensitive INTEGER NOT NULL) WITHOUT ROWID"


@pytest.fixture
def pipeline(tmp_path: Path) -> Any:
    (tmp_path / "pipeline").mkdir()
    return SimpleNamespace(path=tmp_path / "pipeline", meta={"version": "1"}, pipe_names=["ner"])


def test_what_the_files_hold(tmp_path: Path, pipeline: Any) -> None:
    with opened_store(tmp_path, pipeline) as store, opened_answers(tmp_path, *SCOPE) as answers:
        store.put(FINDING)
        answers.put("no?", False)
        with closing(sqlite3.connect(tmp_path / "crosscheck.db")) as beside:  # on disk before `put` returns
            [row] = beside.execute("SELECT question, sensitive FROM answers")
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {
        ".gitignore",
        "spans.db",
        "spans.key",
        "crosscheck.db",
        "crosscheck.key",
    }
    assert schema(tmp_path / "spans.db") == ([FINDINGS, MADE_WITH], 2)
    assert schema(tmp_path / "crosscheck.db") == ([ASKED], 0)
    key = (tmp_path / "crosscheck.key").read_bytes()
    assert row == (sha256(sha256(key, json.dumps(SCOPE).encode()), b"no?"), 0)
    key = (tmp_path / "spans.key").read_bytes()
    with closing(sqlite3.connect(tmp_path / "spans.db")) as database:
        [(digest, value)] = database.execute("SELECT key, value FROM findings")
        assert database.execute("SELECT mark FROM made_with").fetchall() == [(sha256(key, b"atdp span store"),)]
    assert digest == sha256(key, detector_identity(pipeline) + TEXT.encode())[:16]
    assert value == sha256(key, digest + pack(FINDING))[:16] + pack(FINDING)


def test_deleting_spans_keeps_answers(tmp_path: Path, pipeline: Any) -> None:
    with opened_store(tmp_path, pipeline) as store, opened_answers(tmp_path, *SCOPE) as answers:
        store.put(FINDING)
        answers.put("yes?", True)
    (tmp_path / SPANS.database).unlink()
    with opened_store(tmp_path, pipeline) as store, opened_answers(tmp_path, *SCOPE) as answers:
        assert store.get(FINDING.record) is None
        assert answers.get("yes?") is True


@pytest.mark.parametrize("key", [b"", bytes(range(32))])
def test_answers_are_not_thrown_away_where_their_key_is_another(tmp_path: Path, key: bytes) -> None:
    with opened_answers(tmp_path, *SCOPE) as answers:
        answers.put("yes?", True)
    original = (tmp_path / ANSWERS.key).read_bytes()
    (tmp_path / ANSWERS.key).unlink()
    if key:
        (tmp_path / ANSWERS.key).write_bytes(key)
    with opened_answers(tmp_path, *SCOPE) as answers:
        assert answers.get("yes?") is None
    (tmp_path / ANSWERS.key).write_bytes(original)
    with opened_answers(tmp_path, *SCOPE) as answers:
        assert answers.get("yes?") is True


def test_trouble_ends_the_cache_and_is_reported_once(tmp_path: Path) -> None:
    reports = list[tuple[Path, str]]()

    def report(file: Path, reason: str) -> None:
        reports.append((file, reason))

    with closing(SqliteCache(tmp_path, ANSWERS, sha256, on_trouble=report)) as cache:
        cache.put(b"a", 1)
        assert cache.get(b"a") == 1
        (tmp_path / ANSWERS.database).write_bytes(b"nothing" * 3_000)
        for content in (b"a", b"b"):
            cache.put(content, 1)
            assert cache.get(content) is None
    assert reports == [(tmp_path / ANSWERS.database, "SQLITE_NOTADB")]
    assert (tmp_path / ANSWERS.database).exists()
