"""The span store: cached findings of each record, so that another tier or list needs no second pass.

It holds places and labels, no text. They still say something about the records, so the folder is as private as the
corpus.
"""

import contextlib
import hmac
import json
import sys
import zlib
from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.identifiers import IDENTIFIER_LABELS
from atdp_cli.detection.identity import detector_identity
from atdp_cli.detection.scan import Finding
from atdp_cli.events import ChoiceWarning, Notify, ignore
from atdp_cli.files.cache import CacheFormat, SqliteCache

SPANS = CacheFormat(
    name="spans",
    table="findings",
    columns=("key", "value"),
    value_type="BLOB",
    version=1,  # of `pack`; a change that `unpack` cannot tell from damage needs another
    signature=b"atdp span store",
    authenticated=True,
    batch=256,
)


class SpanStore:
    """Findings by the text of their record. Trouble with the disk ends it, and no run: it then knows nothing.

    Args:
        folder: A folder that only its owner may read; made where it is missing.
        pipeline: From `load_pipeline`. A finding of another pipeline, or of other rules, is not found.
        notify: Called where a store is started afresh or given up.
        read_only: Nothing is written, not even where there is no store, or one of another version.
    """

    def __init__(self, folder: Path, pipeline: Any, notify: Notify = ignore, *, read_only: bool = False) -> None:
        def fall_back(reason: str) -> None:
            notify(ChoiceWarning(what="span store", reason=f"{folder} {reason}"))

        def give_up(_: Path, reason: str) -> None:
            fall_back(f"cannot be used ({reason}), so the rest is read without it and not kept")

        self._cache: SqliteCache | None = None
        try:
            if read_only and not (folder / SPANS.database).exists():
                return  # before the pipeline's files are hashed for nothing
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
            read_only=read_only,
        )

    def get(self, record: Record) -> Finding | None:
        """What was found in a record with this text, or None."""
        packed = None if self._cache is None else self._cache.get(_bytes(record.text))
        try:
            return unpack(packed, record) if isinstance(packed, bytes) else None
        except ValueError:
            return None

    def put(self, finding: Finding) -> None:
        """Keep a finding; on disk after some more, or with `close`."""
        if self._cache is not None:
            self._cache.put(_bytes(finding.record.text), pack(finding))

    def close(self) -> None:
        """Write what waits, and let go of the file."""
        if self._cache is not None:
            self._cache.close()


@contextlib.contextmanager
def opened_store(
    folder: Path, pipeline: Any, notify: Notify = ignore, *, read_only: bool = False
) -> Iterator[SpanStore]:
    """The `SpanStore` in a folder; several processes may use one at the same time."""
    with contextlib.closing(SpanStore(folder, pipeline, notify, read_only=read_only)) as store:
        yield store


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# What most of them hold, so that even a short one is small.
_COMMON = json.dumps(
    [[label, "pattern", Tier.LOW_ENTITY] for label in sorted(IDENTIFIER_LABELS)]
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
