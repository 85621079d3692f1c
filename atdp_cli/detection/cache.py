"""The span store: cached findings of each record, so that another tier or list needs no second pass.

It holds places and labels, no text. They still say something about the records, so the folder is as private as the
corpus.
"""

import contextlib
import hmac
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.identity import detector_identity
from atdp_cli.detection.scan import Finding
from atdp_cli.events import ChoiceWarning, Notify, ignore
from atdp_cli.files.cache import CacheFormat, SqliteCache
from atdp_cli.files.private import user_key_file

SPANS = CacheFormat(
    name="spans",
    table="findings",
    columns=("key", "value"),
    version=3,  # of `pack`; a change that `unpack` cannot tell from damage needs another
    batch=256,
)


class SpanStore:
    """Findings by the text of their record. Trouble with the disk ends it, and no run: it then knows nothing.

    Args:
        folder: A folder that only its owner may read; made where it is missing.
        pipeline: From `load_pipeline`. A finding of another pipeline, or of other rules, is not found.
        notify: Called where a store is started afresh or given up.
    """

    def __init__(self, folder: Path, pipeline: Any, notify: Notify = ignore) -> None:
        def fall_back(reason: str) -> None:
            notify(ChoiceWarning(what="span store", reason=f"{folder} {reason}"))

        def give_up(file: Path, reason: str) -> None:
            which = f"without {file} " if file == user_key_file() else ""
            fall_back(f"cannot be used {which}({reason}), so the rest is read without it and not kept")

        self._cache: SqliteCache | None = None
        try:
            identity = detector_identity(pipeline)
        except OSError as error:
            give_up(folder, error.strerror or type(error).__name__)
            return
        # The identity has a fixed length, so it cannot run into the text. Two of 2^40 records share a digest with a
        # probability of 2^-49.
        self._cache = SqliteCache(
            folder,
            SPANS,
            lambda key, text: hmac.digest(key, identity + text, "sha256")[:16],
            on_trouble=give_up,
            on_restart=lambda reason: fall_back(f"{reason}, so it is started afresh"),
        )

    def get(self, record: Record) -> Finding | None:
        """Return what was found in a record with this text, or None."""
        packed = None if self._cache is None else self._cache.get(_bytes(record.text))
        try:
            return None if packed is None else unpack(packed, record)
        except ValueError:
            return None

    def put(self, finding: Finding) -> None:
        """Keep a finding. It is on disk once a batch is full, or with `close`."""
        if self._cache is not None:
            self._cache.put(_bytes(finding.record.text), pack(finding))

    def close(self) -> None:
        """Write pending findings and close the file."""
        if self._cache is not None:
            self._cache.close()


@contextlib.contextmanager
def opened_store(folder: Path, pipeline: Any, notify: Notify = ignore) -> Iterator[SpanStore]:
    """Open the `SpanStore` of a folder. Several processes may use it at the same time."""
    with contextlib.closing(SpanStore(folder, pipeline, notify)) as store:
        yield store


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def pack(finding: Finding) -> bytes:
    """Pack a finding for the store. A checksum detects damage."""
    spans = [(span.start, span.end, span.label, span.source, span.tier) for span in finding.spans]
    packed = json.dumps([spans, finding.tokens, finding.sentences], separators=(",", ":"))
    return zlib.compress(packed.encode(), level=1)


def unpack(packed: bytes, record: Record) -> Finding:
    """Unpack the finding of a record.

    Raises:
        ValueError: These are not the bytes of `pack`.
    """
    try:
        spans, tokens, sentences = json.loads(zlib.decompress(packed))
        return Finding(
            record,
            tuple(Span(start, end, label, source, Tier(tier)) for start, end, label, source, tier in spans),
            tuple((start, end) for start, end in tokens),
            tuple((start, end) for start, end in sentences),
        )
    except (zlib.error, ValueError, TypeError) as error:
        raise ValueError("not a packed finding") from error
