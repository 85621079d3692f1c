"""Answers of a cross-check, kept so that a run that was interrupted asks only what is left."""

import hmac
import json
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from atdp_cli.errors import RunError
from atdp_cli.files.private import KEY_BYTES, create_private, key_in, make_private

ANSWERS_FILE, KEY_FILE = "crosscheck.db", "crosscheck.key"

_TABLE = "CREATE TABLE IF NOT EXISTS answers (question BLOB PRIMARY KEY, sensitive INTEGER NOT NULL) WITHOUT ROWID"


class Answers(Protocol):
    """Answers by the text that was asked about; used from several threads."""

    def get(self, text: str) -> bool | None:
        """The answer, or None where there is none yet."""

    def put(self, text: str, answer: bool) -> None:
        """Keep an answer, for good before this returns."""


class InMemory:
    """Answers for one run."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)
        self._answers: dict[bytes, bool] = {}

    def get(self, text: str) -> bool | None:
        """The answer, or None where there is none yet."""
        return self._answers.get(_digest(self._key, text))

    def put(self, text: str, answer: bool) -> None:
        """Keep an answer until the run ends."""
        self._answers[_digest(self._key, text)] = answer


class OnDisk:
    """Answers in an SQLite file that holds no text: each is found by an HMAC of what was asked.

    Args:
        database: A connection that commits by itself and may be used from several threads.
        path: Its file, for messages.
        key: The key of the HMAC.
        scope: Who was asked and how; answers of another scope are not found.
    """

    def __init__(self, database: sqlite3.Connection, path: Path, key: bytes, scope: str) -> None:
        self._database, self._path = database, path
        self._key = hmac.digest(key, scope.encode("utf-8"), "sha256")
        self._lock = threading.Lock()
        self._closed = False

    def get(self, text: str) -> bool | None:
        """The answer, or None where there is none yet.

        Raises:
            RunError: The file cannot be read.
        """
        with self._lock, _readable(self._path):
            row = self._database.execute(
                "SELECT sensitive FROM answers WHERE question = ?", (_digest(self._key, text),)
            ).fetchone()
        return None if row is None else bool(row[0])

    def put(self, text: str, answer: bool) -> None:
        """Keep an answer, for good before this returns.

        Raises:
            RunError: The file cannot be written.
        """
        with self._lock, _readable(self._path):
            # A request that was on its way when the run ended comes too late.
            if not self._closed:
                self._database.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?)", (_digest(self._key, text), answer)
                )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._closed = True
            self._database.close()


@contextmanager
def opened_answers(folder: Path | None, *scope: object) -> Iterator[Answers]:
    """The answers kept in a private folder, which is made where it is missing; without one, for this run only.

    Args:
        folder: A folder that only its owner may read.
        scope: Who is asked and how: values that JSON can write.

    Raises:
        RunError: The folder or a file in it cannot be used.
    """
    if folder is None:
        yield InMemory()
        return
    path = folder / ANSWERS_FILE
    with _readable(path):
        make_private(folder)
        key = _key(folder / KEY_FILE)
        create_private(path)
        database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    answers = OnDisk(database, path, key, json.dumps(scope))
    try:
        with _readable(path):
            database.execute(_TABLE)
        yield answers
    finally:
        answers.close()


def _key(path: Path) -> bytes:
    key = key_in(path)
    if len(key) != KEY_BYTES:
        raise RunError(f"{path} is damaged.", "Delete it; answers of earlier runs are then asked for again.")
    return key


def _digest(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode("utf-8"), "sha256")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else getattr(error, "sqlite_errorname", "not SQLite")
        raise RunError(
            f"{path} could not be used ({why}).",
            "Check free space and permissions; deleting it loses only answers, which are asked for again.",
        ) from error
