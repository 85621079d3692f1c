"""The keyed cache: what its files hold, and what happens to them."""

import hmac
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
from atdp_cli.files.private import user_key

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
ASKED = "CREATE TABLE answers (question BLOB PRIMARY KEY, sensitive BLOB NOT NULL) WITHOUT ROWID"


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
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {".gitignore", "spans.db", "crosscheck.db"}
    assert schema(tmp_path / "spans.db") == ([FINDINGS, MADE_WITH], 3)
    assert schema(tmp_path / "crosscheck.db") == ([ASKED], 0)
    key = user_key()
    digest = sha256(sha256(key, json.dumps(SCOPE).encode()), b"no?")
    assert row == (digest, sha256(key, digest + b"0")[:16] + b"0")
    with closing(sqlite3.connect(tmp_path / "spans.db")) as database:
        [(digest, value)] = database.execute("SELECT key, value FROM findings")
        assert database.execute("SELECT mark FROM made_with").fetchall() == [(sha256(key, b"spans"),)]
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


def test_answers_of_another_user_are_not_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_answers(tmp_path, *SCOPE) as answers:
        answers.put("yes?", True)
    with monkeypatch.context() as patch, another_user(patch, tmp_path), opened_answers(tmp_path, *SCOPE) as answers:
        assert answers.get("yes?") is None
    with opened_answers(tmp_path, *SCOPE) as answers:
        assert answers.get("yes?") is True


@contextmanager
def another_user(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    patch.setenv("XDG_STATE_HOME", str(folder / "another user"))
    yield


EMPTY = Finding(FINDING.record, (), FINDING.tokens, FINDING.sentences)


def rows(path: Path, *, replace: list[tuple[bytes, bytes]] | None = None) -> list[tuple[bytes, bytes]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        found = database.execute("SELECT key, value FROM findings").fetchall()
        for row in replace or ():
            database.execute("INSERT OR REPLACE INTO findings VALUES (?, ?)", row)
    return found


def theirs(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    with another_user(patch, folder), opened_store(folder, pipeline) as store:
        store.put(EMPTY)
    # A key that lies beside a store is nobody's.
    for name in ("spans.key", "cache.key", "atdp/cache.key"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "another user" / "atdp" / "cache.key", folder / name)


def theirs_as_ours(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Their rows in a file with our mark."""
    theirs(folder, pipeline, patch)
    planted = rows(folder / "spans.db")
    (folder / "spans.db").unlink()
    patch.undo()
    ours(folder, pipeline)
    rows(folder / "spans.db", replace=planted)


def ours(folder: Path, pipeline: Any, *findings: Finding) -> None:
    with opened_store(folder, pipeline) as store:
        for finding in findings:
            store.put(finding)


def moved(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Our empty finding of another text, under the name of this one."""
    other = Finding(Record("2", "Nothing is here."), (), (), ())
    ours(folder, pipeline, FINDING, other)
    names = dict(rows(folder / "spans.db"))
    wanted = next(name for name, value in names.items() if pack(FINDING) in value)
    rows(folder / "spans.db", replace=[(wanted, next(value for value in names.values() if pack(other) in value))])


def altered(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    ours(folder, pipeline, FINDING)
    [(name, value)] = rows(folder / "spans.db")
    rows(folder / "spans.db", replace=[(name, value[:16] + pack(EMPTY))])


def of_no_key(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Made by hand under the empty key, and under one of zeros."""
    ours(folder, pipeline)
    for key in (b"", bytes(32)):
        name = sha256(key, detector_identity(pipeline) + TEXT.encode())[:16]
        rows(folder / "spans.db", replace=[(name, sha256(key, name + pack(EMPTY))[:16] + pack(EMPTY))])


def a_view(folder: Path, pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    ours(folder, pipeline, FINDING)
    [(name, value)] = rows(folder / "spans.db")
    with closing(sqlite3.connect(folder / "spans.db")) as database:
        planted = (value[:16] + pack(EMPTY)).hex()
        database.execute("DROP TABLE findings")
        database.execute(f"CREATE VIEW findings AS SELECT x'{name.hex()}' AS key, x'{planted}' AS value")


@pytest.mark.parametrize("plant", [theirs, theirs_as_ours, moved, altered, of_no_key, a_view])
def test_no_finding_is_believed_that_is_not_this_users(
    tmp_path: Path, pipeline: Any, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        plant(tmp_path, pipeline, patch)
    heard = list[Any]()
    for _ in range(2):
        with opened_store(tmp_path, pipeline, heard.append) as store:
            assert store.get(FINDING.record) in (None, FINDING)
    told = [event.reason for event in heard if "another user" in event.reason]
    assert len(told) == (plant is theirs)


@pytest.mark.parametrize("change", ["flipped", "of another user"])
def test_no_answer_is_believed_that_is_not_this_users(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if change == "of another user":
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
        with opened_answers(tmp_path, *SCOPE) as answers:
            answers.put("yes?", change == "flipped")
    if change == "flipped":
        with closing(sqlite3.connect(tmp_path / "crosscheck.db", isolation_level=None)) as database:
            [(kept,)] = database.execute("SELECT sensitive FROM answers")
            database.execute("UPDATE answers SET sensitive = ?", (kept[:16] + b"0" if isinstance(kept, bytes) else 0,))
    with opened_answers(tmp_path, *SCOPE) as answers:
        assert answers.get("yes?") in (None, True)


@pytest.mark.parametrize("trouble", ["of others", "no key", "no home"])
def test_without_a_key_of_ones_own_nothing_is_kept(
    tmp_path: Path, pipeline: Any, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "" if trouble == "no home" else str(tmp_path / "state"))
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    if trouble != "no home":
        user_key()
        key = tmp_path / "state" / "atdp" / "cache.key"
        key.chmod(0o644) if trouble == "of others" else key.write_bytes(bytes(16))
    heard = list[Any]()
    with opened_store(tmp_path / "a.private", pipeline, heard.append) as store:
        store.put(FINDING)
        assert store.get(FINDING.record) is None
    assert len(heard) == 1
    assert "cache.key" in heard[0].reason
    assert not (tmp_path / "a.private").exists()


def test_trouble_ends_the_cache_and_is_reported_once(tmp_path: Path) -> None:
    reports = list[tuple[Path, str]]()

    def report(file: Path, reason: str) -> None:
        reports.append((file, reason))

    with closing(SqliteCache(tmp_path, ANSWERS, sha256, on_trouble=report)) as cache:
        cache.put(b"a", b"1")
        assert cache.get(b"a") == b"1"
        (tmp_path / ANSWERS.database).write_bytes(b"nothing" * 3_000)
        for content in (b"a", b"b"):
            cache.put(content, b"1")
            assert cache.get(content) is None
    assert reports == [(tmp_path / ANSWERS.database, "SQLITE_NOTADB")]
    assert (tmp_path / ANSWERS.database).exists()
