"""A cache in an SQLite file: values under a keyed hash of what they belong to.

The file holds nothing of what was hashed: the key is the user's, in a folder of their own, and without it nobody can
test guesses or put a value in. Several threads and processes may use one cache at the same time.
"""

import contextlib
import hmac
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.files.private import create_private, make_private, user_key, user_key_file

_TAG_BYTES = 16

_BATCH_BYTES = 1 << 18  # so much waits for the next transaction at most

_TIMEOUT = 60  # seconds that a process waits for another one's transaction, which takes milliseconds

_TROUBLE = (OSError, sqlite3.Error, UnicodeDecodeError)


@dataclass(frozen=True, kw_only=True)
class CacheFormat:
    """The file of a cache.

    Attributes:
        name: The file is NAME.db.
        columns: Those of the table of values: the hash, and the value.
        version: Of the file's format; SQLite keeps it as `user_version`.
        batch: How many values are written at once; 1 has each on disk before `put` returns.
    """

    name: str
    table: str
    columns: tuple[str, str]
    version: int = 0
    batch: int = 1

    @property
    def database(self) -> str:
        """The name of the SQLite file."""
        return f"{self.name}.db"


class SqliteCache:
    """Values by what they belong to. Trouble with the disk ends the cache: it then finds nothing.

    Each value carries an HMAC, so that none is found that was damaged, altered, moved or put there by somebody else.

    Args:
        folder: A folder that only its owner may read; made where it is missing.
        layout: The file in it.
        digest: The keyed hash of a key and what a value belongs to.
        on_trouble: Is given the file and the reason why it cannot be used; it may raise to end the caller too.
        on_restart: Is given the reason why a new file replaces one that was damaged or is not the user's. None for
            values that are never thrown away: damage is then trouble, and what others wrote stays and is not found.
    """

    def __init__(
        self,
        folder: Path,
        layout: CacheFormat,
        digest: Callable[[bytes, bytes], bytes],
        *,
        on_trouble: Callable[[Path, str], None],
        on_restart: Callable[[str], None] | None = None,
    ) -> None:
        self._layout, self._digest, self._path = layout, digest, folder / layout.database
        self._on_trouble, self._on_restart = on_trouble, on_restart
        self._database: sqlite3.Connection | None = None
        self._key = b""
        self._pending: dict[bytes, bytes] = {}
        self._size = 0
        self._lock = threading.Lock()
        with self._guarded(key=True):
            self._key = user_key()
        if not self._key:
            return
        with self._guarded():
            make_private(folder)
            try:
                self._connect()
            except _TROUBLE as error:
                if on_restart is None or not _is_damage(error):
                    raise
                self._delete()
                on_restart("was damaged")
                self._connect()

    def get(self, content: bytes) -> bytes | None:
        """Return the value of this content, or None."""
        with self._lock, self._guarded():
            if self._database is None:
                return None
            digest = self._digest(self._key, content)
            value = self._pending.get(digest)
            if value is None:
                (name, of_value), table = self._layout.columns, self._layout.table
                select = f"SELECT {of_value} FROM {table} WHERE {name} = ?"  # noqa: S608 - names of our own
                [value] = self._database.execute(select, (digest,)).fetchone() or [None]
            if isinstance(value, bytes) and hmac.compare_digest(value, self._tagged(digest, value[_TAG_BYTES:])):
                return value[_TAG_BYTES:]
        return None

    def put(self, content: bytes, value: bytes) -> None:
        """Keep a value: on disk once a batch is full, or with `close`. After `close` nothing is kept."""
        with self._lock:
            if self._database is None:
                return
            digest = self._digest(self._key, content)
            self._size += len(value)
            self._pending[digest] = self._tagged(digest, value)
            if len(self._pending) >= self._layout.batch or self._size >= _BATCH_BYTES:
                self._write()

    def close(self) -> None:
        """Write pending values and close the file."""
        with self._lock:
            self._write()
            self._disconnect()

    def _write(self) -> None:
        if self._database is not None and self._pending:
            insert = f"INSERT OR REPLACE INTO {self._layout.table} VALUES (?, ?)"  # noqa: S608 - a name of our own
            with self._guarded(), _transaction(self._database):
                self._database.executemany(insert, self._pending.items())
        self._pending, self._size = {}, 0

    def _tagged(self, digest: bytes, value: bytes) -> bytes:
        """A value behind its HMAC: one that was damaged, altered or moved to another place has none."""
        return hmac.digest(self._key, digest + value, "sha256")[:_TAG_BYTES] + value

    def _connect(self) -> None:
        create_private(self._path)
        self._database = sqlite3.connect(self._path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
        if self._on_restart is not None:
            # The system may write when it likes: a power failure then costs the file, and wrong values are never read.
            self._database.execute("PRAGMA synchronous = OFF")
        with _transaction(self._database):
            reason = self._prepare(self._database)
        if reason and self._on_restart is not None:
            self._on_restart(reason)

    def _prepare(self, database: sqlite3.Connection) -> str | None:
        """Make tables where there are none; return why tables that were there were dropped."""
        layout, reason = self._layout, None
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables and self._on_restart is not None and (reason := self._misfit(database, tables)):
            for name in tables:
                database.execute(f'DROP TABLE "{name.replace(chr(34), 2 * chr(34))}"')
            tables = []
        if not tables:
            name, value = layout.columns
            columns = f"{name} BLOB PRIMARY KEY, {value} BLOB NOT NULL"
            database.execute(f"CREATE TABLE {layout.table} ({columns}) WITHOUT ROWID")
            if self._on_restart is not None:
                database.execute("CREATE TABLE made_with (mark BLOB NOT NULL)")
                database.execute("INSERT INTO made_with VALUES (?)", (self._mark(),))
            database.execute(f"PRAGMA user_version = {layout.version}")
        return reason

    def _misfit(self, database: sqlite3.Connection, tables: list[str]) -> str | None:
        if database.execute("PRAGMA user_version").fetchone() != (self._layout.version,):
            return "is of another version"
        marked = "made_with" in tables and database.execute("SELECT mark FROM made_with").fetchone() == (self._mark(),)
        return None if marked else "was written by another user or on another machine"

    def _mark(self) -> bytes:
        """What tells a file of this user, so that one of another's is not taken for an empty one."""
        return hmac.digest(self._key, self._layout.name.encode(), "sha256")

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _delete(self) -> None:
        self._disconnect()
        for file in (self._path, self._path.with_name(f"{self._path.name}-journal")):
            file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _guarded(self, *, key: bool = False) -> Iterator[None]:
        try:
            yield
        except _TROUBLE as error:
            self._disconnect()
            if self._on_restart is not None and _is_damage(error):
                with contextlib.suppress(OSError):
                    self._delete()
            if isinstance(error, OSError):
                reason = error.strerror or type(error).__name__
            else:
                reason = getattr(error, "sqlite_errorname", type(error).__name__)
            self._on_trouble(user_key_file() if key else self._path, reason)


def _is_damage(error: Exception) -> bool:
    # The subclasses stand for locks, full disks and the like; a message may quote bytes that are no text.
    return type(error) in (sqlite3.DatabaseError, UnicodeDecodeError)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction that waits for its turn at the beginning, where waiting cannot deadlock."""
    database.execute("BEGIN IMMEDIATE")
    with database:
        yield
