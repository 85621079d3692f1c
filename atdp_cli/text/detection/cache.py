"""The span store: what a pass found in each record, so that another tier or list needs no second pass.

It holds places and labels, no text: a record is looked up by a keyed hash, and without the key file nobody can test
guesses. Places and labels still say something about the records, so the folder is as private as the corpus.
"""

import contextlib
import hmac
import json
import sqlite3
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from atdp_cli.events import FellBack, Notify, ignore
from atdp_cli.files.private import KEY_BYTES, create_private, key_in, make_private
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.identifiers import LABELS
from atdp_cli.text.detection.identity import detector_identity
from atdp_cli.text.detection.scan import Finding
from atdp_cli.text.detection.spans import Span, Tier

DATABASE_FILE, KEY_FILE = "spans.db", "spans.key"

_DIGEST_BYTES = 16  # two of 2^40 records share one with a probability of 2^-49
_RECORDS, _BYTES = 256, 1 << 18  # so much waits for the next transaction at most
_TIMEOUT = 60  # seconds that a process waits for another one's transaction, which takes milliseconds
_TROUBLE = (OSError, sqlite3.Error, UnicodeDecodeError)
_TABLES = (
    "CREATE TABLE findings (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE made_with (mark BLOB NOT NULL)",
)


class Store:
    """Findings by the text of their record. Trouble with the disk ends it, and no run: it then knows nothing."""

    def __init__(self, folder: Path, notify: Notify = ignore) -> None:
        self._folder, self._notify = folder, notify
        self._database: sqlite3.Connection | None = None
        self._key = self._identity = b""
        self._pending: dict[bytes, bytes] = {}
        self._size = 0

    def open(self, identity: Callable[[], bytes]) -> None:
        """Make the folder and the files where they are missing.

        Args:
            identity: Gives what a finding depends on besides the text; one made with another is not found.
        """
        with self._or_without():
            self._identity = identity()
            make_private(self._folder)
            try:
                self._connect()
            except _TROUBLE as error:
                if not _is_damage(error):
                    raise
                self._drop()
                self._say("was damaged, so it is started afresh")
                self._connect()

    def get(self, record: Record) -> Finding | None:
        """What was found in a record with this text, or None."""
        if self._database is None:
            return None
        digest = self._digest(record)
        value = self._pending.get(digest)
        if value is None:
            with self._or_without():
                row = self._database.execute("SELECT value FROM findings WHERE key = ?", (digest,)).fetchone()
                value = row[0] if row else None
        if not isinstance(value, bytes):
            return None
        tag, packed = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:]
        if not hmac.compare_digest(tag, self._tag(digest, packed)):
            return None
        try:
            return unpack(packed, record)
        except ValueError:
            return None

    def put(self, finding: Finding) -> None:
        """Keep a finding; on disk after some more, or with `close`."""
        if self._database is None:
            return
        digest, packed = self._digest(finding.record), pack(finding)
        self._pending[digest] = self._tag(digest, packed) + packed
        self._size += len(packed)
        if len(self._pending) >= _RECORDS or self._size >= _BYTES:
            self._write()

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        self._write()
        self._let_go()

    def _write(self) -> None:
        if self._database is not None and self._pending:
            with self._or_without(), _transaction(self._database):
                self._database.executemany("INSERT OR REPLACE INTO findings VALUES (?, ?)", self._pending.items())
        self._pending, self._size = {}, 0

    def _digest(self, record: Record) -> bytes:
        # The identity has a fixed length, so the two cannot run into one another.
        content = self._identity + record.text.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, content, "sha256")[:_DIGEST_BYTES]

    def _tag(self, digest: bytes, packed: bytes) -> bytes:
        """A value that was damaged, altered or moved to another record is none."""
        return hmac.digest(self._key, digest + packed, "sha256")[:_DIGEST_BYTES]

    def _connect(self) -> None:
        path = self._folder / DATABASE_FILE
        create_private(path)
        self._database = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
        # The system may write when it likes: a power failure then costs the store, and wrong spans are never read.
        self._database.execute("PRAGMA synchronous = OFF")
        with _transaction(self._database):
            self._key, afresh = _prepared(self._database, self._folder / KEY_FILE)
        if afresh:
            self._say(f"{afresh}, so it is started afresh")

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _drop(self) -> None:
        self._let_go()
        path = self._folder / DATABASE_FILE
        for file in (path, path.with_name(f"{path.name}-journal")):
            file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _or_without(self) -> Iterator[None]:
        try:
            yield
        except _TROUBLE as error:
            if isinstance(error, OSError):
                why = error.strerror or type(error).__name__
            else:
                why = getattr(error, "sqlite_errorname", type(error).__name__)
            self._let_go()
            if _is_damage(error):
                with contextlib.suppress(OSError):
                    self._drop()
            self._say(f"cannot be used ({why}), so the rest is read without it and not kept")

    def _say(self, what: str) -> None:
        self._notify(FellBack(what="span store", reason=f"{self._folder} {what}"))


@contextlib.contextmanager
def opened_store(folder: Path, pipeline: Any, notify: Notify = ignore) -> Iterator[Store]:
    """The store in a folder, for what this pipeline and the default recognisers find.

    Several processes may use one at the same time.

    Args:
        folder: A folder that only its owner may read; made where it is missing.
        pipeline: From `load_pipeline`.
        notify: Told where a store was started afresh, or is done without.
    """
    store = Store(folder, notify)
    store.open(lambda: detector_identity(pipeline))
    try:
        yield store
    finally:
        store.close()


def _prepared(database: sqlite3.Connection, key_file: Path) -> tuple[bytes, str | None]:
    """The key, and why tables that were there had to go."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    [format_of_file] = database.execute("PRAGMA user_version").fetchone()
    key = _read_key(key_file)
    afresh = None
    if tables and format_of_file != FORMAT:
        afresh = "is of another version"
    elif tables and (key is None or database.execute("SELECT mark FROM made_with").fetchone() != (_mark(key),)):
        afresh = "lacks its key"
    elif tables and key is not None:
        return key, None
    for name in tables:
        database.execute(f'DROP TABLE "{name.replace(chr(34), 2 * chr(34))}"')
    if key is None:
        key_file.unlink(missing_ok=True)
        key = key_in(key_file)
    for table in _TABLES:
        database.execute(table)
    database.execute("INSERT INTO made_with VALUES (?)", (_mark(key),))
    database.execute(f"PRAGMA user_version = {FORMAT}")
    return key, afresh


def _mark(key: bytes) -> bytes:
    return hmac.digest(key, b"atdp span store", "sha256")


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) == KEY_BYTES else None


def _is_damage(error: Exception) -> bool:
    # The subclasses stand for locks, full disks and the like; a message may quote bytes that are no text.
    return type(error) in (sqlite3.DatabaseError, UnicodeDecodeError)


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """One that waits its turn at the beginning, where waiting cannot deadlock."""
    database.execute("BEGIN IMMEDIATE")
    with database:
        yield


FORMAT = 1
"""Of `pack`; a change that `unpack` cannot tell from damage needs another."""

# What most of them hold, so that even a short one is small.
_COMMON = json.dumps(
    [[label, "pattern", Tier.LOW_ENTITY] for label in sorted(LABELS)]
    + [["SUBJ", "dep", Tier.LOW_CONTEXTUAL], ["OBJ", "dep", Tier.LOW_CONTEXTUAL], ["PRON", "pos", Tier.LOW_CONTEXTUAL]]
    + [["VERB", "pos", Tier.HIGH_CONTEXTUAL], ["PROPN", "pos", Tier.LOW_CONTEXTUAL]]
    + [[label, "ner", Tier.HIGH_ENTITY] for label in ("CARDINAL", "NORP", "MONEY")]
    + [[label, "ner", Tier.LOW_ENTITY] for label in ("FAC", "LOC", "GPE", "DATE", "ORG", "PERSON")],
    separators=(",", ":"),
).encode()


def pack(finding: Finding) -> bytes:
    """What `unpack` gives back for the same record."""
    kinds: dict[tuple[str, str, str], int] = {}
    numbers: list[int] = []
    before = 0
    for span in finding.spans:
        kind = kinds.setdefault((span.label, span.source, span.tier), len(kinds))
        numbers += (span.start - before, span.end - span.start, kind)
        before = span.start
    before = 0
    for start, end in finding.tokens:
        numbers += (start - before, end - start)
        before = end
    numbers += (end - start for start, end in finding.sentences)
    sizes = len(finding.spans), len(finding.tokens), len(finding.sentences)
    largest = max(numbers, default=0)
    code = "B" if largest < 1 << 8 else "H" if largest < 1 << 16 else "I"
    heading = json.dumps([*kinds, *sizes, code], separators=(",", ":")).encode()
    packer = zlib.compressobj(level=1, zdict=_COMMON)
    return packer.compress(heading + b"\n" + _little(array(code, numbers)).tobytes()) + packer.flush()


def unpack(packed: bytes, record: Record) -> Finding:
    """The finding of a record.

    Raises:
        ValueError: These are not the bytes of `pack`.
    """
    try:
        unpacker = zlib.decompressobj(zdict=_COMMON)
        heading, _, content = unpacker.decompress(packed).partition(b"\n")
        if not unpacker.eof:
            raise ValueError
        *kinds, spans, tokens, sentences, code = json.loads(heading)
        numbers = _little(array(code, content)).tolist()
        if len(numbers) != 3 * spans + 2 * tokens + sentences:
            raise ValueError
        known = [(label, source, Tier(tier)) for label, source, tier in kinds]
        of_spans, of_tokens = numbers[: 3 * spans], numbers[3 * spans : 3 * spans + 2 * tokens]
        edges = list(accumulate(of_tokens))
        return Finding(
            record,
            tuple(
                Span(start, start + length, *known[kind])
                for start, length, kind in zip(accumulate(of_spans[::3]), of_spans[1::3], of_spans[2::3], strict=True)
            ),
            tuple(zip(edges[::2], edges[1::2], strict=True)),
            tuple(pairwise(accumulate(numbers[3 * spans + 2 * tokens :], initial=0))),
        )
    except (zlib.error, ValueError, TypeError, IndexError) as error:
        raise ValueError("not a packed finding") from error


def _little(numbers: "array[int]") -> "array[int]":
    """To and from the order of bytes in a file, which may lie on a disk that two machines share."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
