"""Placeholders for flagged spans in redacted text: four styles, and the pattern that recognises one."""

import base64
import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from atdp_cli.corpus.spans import Span
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import STANDARD_OUTPUT, unreadable
from atdp_cli.files.documents import open_regular
from atdp_cli.files.private import KEY_BYTES, create_private

# One digit fewer than `pattern_of` takes for a number, so that what is counted on from these is recognised too.
_NUMBERED = re.compile(r"\[([A-Za-z][A-Za-z0-9_-]{0,39})_([1-9][0-9]{0,5})\]")


class Style(StrEnum):
    """How placeholders look.

    `[PERSON]`; `<PERSON>`, as in the paper; `[PERSON_1]`, equal texts of one record numbered alike; or
    `[PERSON_k7f2q4xa]`, equal texts under one key named alike in all records. The last two leak by their
    purpose: who reads the redacted text sees which flagged texts are equal, and how often each occurs.
    """

    LABEL = "label"
    ANGLE = "angle"
    NUMBERED = "numbered"
    PSEUDONYM = "pseudonym"


@dataclass(frozen=True, slots=True)
class Masking:
    """The style and the key of placeholders.

    Attributes:
        style: How they look.
        key: The secret under pseudonyms, at least `KEY_BYTES` long; the other styles have no use for it.
    """

    style: Style = Style.LABEL
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.style is Style.PSEUDONYM and len(self.key) < KEY_BYTES:
            raise ValueError(f"pseudonyms need a key of {KEY_BYTES} bytes or more")


def fresh_masking(style: Style) -> Masking:
    """A style with a random key, where it needs one, that nobody else has."""
    return Masking(style, secrets.token_bytes(KEY_BYTES) if style is Style.PSEUDONYM else b"")


def placeholders(text: str, spans: Sequence[Span], masking: Masking) -> list[str]:
    """Return the placeholder of each span of one record, in order.

    Numbers count from 1 for each label, or on from those that the text around the spans has already.

    Args:
        text: The record's text.
        spans: Sorted and disjoint.
        masking: How placeholders look.
    """
    match masking.style:
        case Style.LABEL:
            return [f"[{span.label}]" for span in spans]
        case Style.ANGLE:
            return [f"<{span.label}>" for span in spans]
        case Style.NUMBERED:
            return _numbered(text, spans)
        case Style.PSEUDONYM:
            surfaces = ((span.label, text[span.start : span.end]) for span in spans)
            return [f"[{label}_{surrogate(masking.key, label, surface)}]" for label, surface in surfaces]


def surrogate(key: bytes, label: str, surface: str) -> str:
    """Eight letters and digits for a flagged text: 40 bits of its HMAC-SHA256, in lower-case base32.

    Case and the amount of white space do not matter. Among n different texts with one label two share a
    surrogate with a chance of about n²/2⁴¹: 0.5 % for 100,000, a third for a million. Then two names look
    like one; nothing more is revealed.
    """
    message = f"{label}\0{normalised(surface)}".encode("utf-8", "surrogatepass")
    return base64.b32encode(hmac.digest(key, message, hashlib.sha256)[:5]).decode().lower()


def normalised(surface: str) -> str:
    """Case-fold a flagged text and normalise its white space."""
    return " ".join(surface.casefold().split())


def pattern_of(labels: Iterable[str]) -> re.Pattern[str]:
    """A pattern for placeholders of any style with one of these labels."""
    either = "|".join(sorted(map(re.escape, labels)))
    return re.compile(rf"\[(?:{either})(?:_(?:[1-9][0-9]{{0,6}}|[a-z2-7]{{8}}))?\]|<(?:{either})>")


def _numbered(text: str, spans: Sequence[Span]) -> list[str]:
    last = _last_numbers(text, spans)
    numbers: dict[tuple[str, str], int] = {}
    names: list[str] = []
    for span in spans:
        name = (span.label, normalised(text[span.start : span.end]))
        if name not in numbers:
            last[span.label] += 1
            numbers[name] = last[span.label]
        names.append(f"[{span.label}_{numbers[name]}]")
    return names


def _last_numbers(text: str, spans: Sequence[Span]) -> Counter[str]:
    """The largest number of each label in what stays: an earlier redaction's numbers are not given again."""
    last: Counter[str] = Counter()
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(text)]
    for start, end in zip(ends, starts, strict=True):
        for label, number in _NUMBERED.findall(text, start, end):
            last[label] = max(last[label], int(number))
    return last


MAX_BYTES = 4096
"""The most bytes of a key file; a longer file is taken for something else."""


def read_or_create_key(path: Path) -> bytes:
    """Read a key file. If it does not exist it is created with random bytes, for its owner alone.

    Raises:
        InputError: The file has fewer than 32 bytes or more than `MAX_BYTES`, or cannot be read or created.
    """
    if path == STANDARD_OUTPUT:
        raise InputError(f"{path} stands for a stream, and a key is a file.", "Name another file.")
    try:
        create_private(path, secrets.token_bytes(KEY_BYTES))
    except OSError as error:
        raise InputError(f"{path} could not be created ({error.strerror}).", "Name another file.") from error
    try:
        with open_regular(path) as stream:
            key = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if not KEY_BYTES <= len(key) <= MAX_BYTES:
        size = f"only {len(key)}" if len(key) < KEY_BYTES else f"more than {MAX_BYTES:,}"
        raise InputError(
            f"{path} has {size} bytes; a key for pseudonyms has {KEY_BYTES} to {MAX_BYTES:,}.",
            "Name another file; one that does not exist is created with a random key.",
        )
    return key
