"""Findings as bytes: small, and without the record's text or id."""

import json
import sys
import zlib
from array import array
from itertools import accumulate, pairwise

from atdp_cli.text.corpora.records import Record
from atdp_cli.text.identifiers import LABELS
from atdp_cli.text.scan import Finding
from atdp_cli.text.spans import Span, Tier

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
