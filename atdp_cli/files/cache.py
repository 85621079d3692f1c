"""A cache in an SQLite file: values under a keyed hash of what they belong to.

The file holds nothing of what was hashed: without the key file nobody can test guesses. Several threads and processes
may use one cache at the same time.
"""

import contextlib
import errno
import hmac
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.files.documents import read_whole
from atdp_cli.files.private import KEY_BYTES, create_private, key_in, make_private

Value = bytes | int

_TAG_BYTES = 16

_BATCH_BYTES = 1 << 18  # so much waits for the next transaction at most

_TIMEOUT = 60  # seconds that a process waits for another one's transaction, which takes milliseconds

_TROUBLE = (OSError, sqlite3.Error, UnicodeDecodeError)


@dataclass(frozen=True, kw_only=True)
class CacheFormat:
    """The files of a cache.

    Attributes:
        name: The files are NAME.db and NAME.key.
        columns: Those of the table of values: the hash, and the value.
        value_type: The type of the value's column.
        version: Of the file's format; SQLite keeps it as `user_version`.
        signature: What a table signs with the key, so that a file without its key is recognised; empty for none.
        authenticated: Whether each value (bytes) carries an HMAC of its own, so that a damaged one is not found.
        batch: How many values are written at once; 1 has each on disk before `put` returns.
    """

    name: str
    table: str
    columns: tuple[str, str]
    value_type: str
    version: int = 0
    signature: bytes = b""
    authenticated: bool = False
    batch: int = 1

    @property
    def database(self) -> str:
        """The name of the SQLite file."""
        return f"{self.name}.db"

    @property
    def key(self) -> str:
        """The name of the file that holds the key."""
        return f"{self.name}.key"


class SqliteCache:
    """Values by what they belong to. Trouble with the disk ends the cache: it then finds nothing.

    Args:
        folder: A folder that only its owner may read; made where it is missing.
        layout: The files in it.
        digest: The keyed hash of a key and what a value belongs to.
        on_trouble: Is given the file and the reason why it cannot be used; it may raise to end the caller too.
        on_restart: Is given the reason why a new file replaces one that was damaged or does not fit. None for values
            that are never thrown away: such a file is then trouble.
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
        self._layout, self._digest = layout, digest
        self._path, self._key_file = folder / layout.database, folder / layout.key
        self._on_trouble, self._on_restart = on_trouble, on_restart
        self._database: sqlite3.Connection | None = None
        self._key = b""
        self._pending: dict[bytes, Value] = {}
        self._size = 0
        self._lock = threading.Lock()
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

    def get(self, content: bytes) -> Value | None:
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
            if not self._layout.authenticated or value is None:
                return value
            if isinstance(value, bytes) and hmac.compare_digest(value, self._tagged(digest, value[_TAG_BYTES:])):
                return value[_TAG_BYTES:]
        return None

    def put(self, content: bytes, value: Value) -> None:
        """Keep a value: on disk once a batch is full, or with `close`. After `close` nothing is kept."""
        with self._lock:
            if self._database is None:
                return
            digest = self._digest(self._key, content)
            if isinstance(value, bytes):
                self._size += len(value)
                value = self._tagged(digest, value) if self._layout.authenticated else value
            self._pending[digest] = value
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
        """Read or make key and tables; return why tables that were there were dropped."""
        layout, reason = self._layout, None
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        with contextlib.suppress(FileNotFoundError):
            self._key = read_whole(self._key_file)
        if tables and self._on_restart is not None and (reason := self._misfit(database)):
            for name in tables:
                database.execute(f'DROP TABLE "{name.replace(chr(34), 2 * chr(34))}"')
            tables = []
        if len(self._key) != KEY_BYTES:
            if self._key and self._on_restart is None:
                raise OSError(errno.EINVAL, "not a key", str(self._key_file))
            self._key_file.unlink(missing_ok=True)
            self._key = key_in(self._key_file)
        if not tables:
            name, value = layout.columns
            columns = f"{name} BLOB PRIMARY KEY, {value} {layout.value_type} NOT NULL"
            database.execute(f"CREATE TABLE {layout.table} ({columns}) WITHOUT ROWID")
            if layout.signature:
                database.execute("CREATE TABLE made_with (mark BLOB NOT NULL)")
                database.execute("INSERT INTO made_with VALUES (?)", (self._mark(),))
            database.execute(f"PRAGMA user_version = {layout.version}")
        return reason

    def _misfit(self, database: sqlite3.Connection) -> str | None:
        if database.execute("PRAGMA user_version").fetchone() != (self._layout.version,):
            return "is of another version"
        signed = self._layout.signature and database.execute("SELECT mark FROM made_with").fetchone() != (self._mark(),)
        return "lacks its key" if signed else None

    def _mark(self) -> bytes:
        return hmac.digest(self._key, self._layout.signature, "sha256")

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _delete(self) -> None:
        self._disconnect()
        for file in (self._path, self._path.with_name(f"{self._path.name}-journal")):
            file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
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
            at_key = isinstance(error, OSError) and error.filename == str(self._key_file)
            self._on_trouble(self._key_file if at_key else self._path, reason)


def _is_damage(error: Exception) -> bool:
    # The subclasses stand for locks, full disks and the like; a message may quote bytes that are no text.
    return type(error) in (sqlite3.DatabaseError, UnicodeDecodeError)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction that waits for its turn at the beginning, where waiting cannot deadlock."""
    database.execute("BEGIN IMMEDIATE")
    with database:
        yield
