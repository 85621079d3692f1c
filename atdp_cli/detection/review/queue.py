"""Review queues: sampled sentences with masked spans, and people's decisions about each."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from atdp_cli.corpus.spans import Range, Span, Tier
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.results import QueueSummary
from atdp_cli.detection.review.sample import Drawn, check_rate, sample_sentences, sentences_of
from atdp_cli.errors import InputError
from atdp_cli.files.atomic_write import atomic_rewrite, atomic_write
from atdp_cli.files.corpus_file import LONE_SURROGATE, check_regular, display_name, read_lines
from atdp_cli.files.documents import RepeatedKeyError, parse_json

STRATA = ("flagged", "unflagged")


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Line):
    """The first line of a queue: what it was drawn from.

    Attributes:
        schema_version: Of the file format.
        kind: Tells this file from other JSON Lines.
        corpora: The absolute paths of its files, in order; `-` for standard input.
        unit: As for `read_records`, like `text_field`, `id_field` and `turns`.
        skip_bad: Whether lines that cannot be read were skipped.
        tier: What counts as sensitive.
        review_share: The share of the sentences that was asked for.
        options: Other options of the detector that were given, by name; of a file its absolute path.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-review-queue"] = "atdp-review-queue"
    corpora: tuple[str, ...] = Field(min_length=1)
    unit: str = "line"
    text_field: str = "text"
    id_field: str | None = None
    turns: str | None = None
    skip_bad: bool = False
    tier: Tier
    review_share: float
    options: dict[Literal["entities", "exclude", "detector"], str] = Field(default_factory=dict)


class QueuePosition(_Line):
    """Characters `start` to `end` (code points, end exclusive) of a record."""

    start: int = Field(ge=0)
    end: int

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.start >= self.end:
            raise ValueError("A place is empty.")
        return self


class Masked(QueuePosition):
    """A span that the queue hides."""

    label: str
    source: str


class Decision(_Line):
    """What a person decided about a sentence.

    Attributes:
        verdict: Whether they looked at it or passed it by.
        drop: The spans that are not sensitive.
        mark: The terms that the detector missed, as they were typed.
    """

    verdict: Literal["reviewed", "skipped"]
    drop: tuple[QueuePosition, ...] = ()
    mark: tuple[str, ...] = ()


class QueueEntry(_Line):
    """One sentence of a queue. It holds no character of a flagged span.

    Attributes:
        id: The record's id.
        record: Which record of the corpus it is, from 0.
        start: Where the sentence begins in the record.
        end: Where it ends.
        stratum: Whether a span touches it.
        stands_for: How many sentences of its stratum it stands for.
        masked: The sentence; its n-th span reads `[n:LABEL]`.
        spans: The spans; the first and the last may reach beyond the sentence.
        decision: None until somebody decides.
    """

    id: str
    record: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int
    stratum: Literal["flagged", "unflagged"]
    stands_for: float = Field(ge=1)
    masked: str
    spans: tuple[Masked, ...]
    decision: Decision | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        ends = [self.start, *(span.end for span in self.spans)]
        if any(span.start < end for span, end in zip(self.spans[1:], ends[1:-1], strict=True)):
            raise ValueError("Two spans share a character.")
        if any(span.end <= self.start or span.start >= self.end for span in self.spans):
            raise ValueError("A span lies outside the sentence.")
        if (self.stratum == "flagged") != bool(self.spans):
            raise ValueError("The stratum and the spans contradict each other.")
        between = _between(self.start, self.end, self.spans)
        masks = sum(len(mask_of(number, span.label)) for number, span in enumerate(self.spans, start=1))
        if len(self.masked) != masks + sum(end - start for start, end in between):
            raise ValueError("The masked sentence has another length than its places say.")
        return self

    def pieces(self) -> tuple[str, ...]:
        """What stands before, between and after the masks."""
        pieces, at = [], 0
        for number, (start, end) in enumerate(_between(self.start, self.end, self.spans), start=1):
            pieces.append(self.masked[at : at + end - start])
            at += end - start
            at += len(mask_of(number, self.spans[number - 1].label)) if number <= len(self.spans) else 0
        return tuple(pieces)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A whole queue, in the order of the corpus."""

    header: Header
    entries: tuple[QueueEntry, ...]


def mask_of(number: int, label: str) -> str:
    """Return the mask of a sentence's span: `[1:PERSON]`."""
    return f"[{number}:{label}]"


def masked(text: str, start: int, end: int, spans: Iterable[Span | Masked]) -> str:
    """Mask sorted, disjoint spans in characters `start` to `end` of a record's text."""
    spans = tuple(spans)
    masks = [mask_of(number, span.label) for number, span in enumerate(spans, start=1)]
    pieces = [text[start:end] for start, end in _between(start, end, spans)]
    return writable("".join(piece + mask for piece, mask in zip(pieces, [*masks, ""], strict=True)))


def _between(start: int, end: int, spans: Iterable[Span | Masked]) -> list[Range]:
    spans = tuple(spans)
    starts = [start, *(min(span.end, end) for span in spans)]
    ends = [*(max(span.start, start) for span in spans), end]
    return list(zip(starts, ends, strict=True))


def writable(text: str) -> str:
    """Replace what UTF-8 cannot write. The length stays."""
    return LONE_SURROGATE.sub("\ufffd", text)


def entry_of(drawn: Drawn) -> QueueEntry:
    """Make the line of a queue for a sentence."""
    sentence = drawn.sentence
    start, end = sentence.place
    return QueueEntry(
        id=writable(sentence.record.id),
        record=sentence.position,
        start=start,
        end=end,
        stratum="flagged" if sentence.spans else "unflagged",
        stands_for=drawn.stands_for,
        masked=masked(sentence.record.text, start, end, sentence.spans),
        spans=tuple(Masked(start=s.start, end=s.end, label=s.label, source=s.source) for s in sentence.spans),
    )


def write_queue(path: Path, detections: Iterable[Detection], header: Header, draw: random.Random) -> QueueSummary:
    """Draw `header.review_share` of the sentences of a whole corpus into a new queue, written wholly or not at all.

    The file is its owner's alone (mode 0600). The detections are read once, one in memory at a time.

    Args:
        path: The queue.
        detections: Of every record, in the corpus's order.
        header: What they come from.
        draw: Where chance comes from; `random.SystemRandom()` unless a test must repeat itself.

    Raises:
        UsageError: The share is out of range.
        InputError: The folder is missing.
        RunError: The queue cannot be written.
    """
    check_rate(header.review_share)
    count = dict.fromkeys(STRATA, 0)
    with atomic_write(path, mode=0o600) as stream:
        stream.write(_bytes(header))
        for drawn in sample_sentences(sentences_of(detections, header.tier), header.review_share, draw):
            entry = entry_of(drawn)
            stream.write(_bytes(entry))
            count[entry.stratum] += 1
    return QueueSummary(queue=str(path), flagged=count["flagged"], unflagged=count["unflagged"])


def save_queue(path: Path, queue: Queue) -> None:
    """Rewrite a queue. Its permissions stay."""
    atomic_rewrite(path, b"".join(map(_bytes, (queue.header, *queue.entries))))


def _bytes(line: _Line) -> bytes:
    return (line.model_dump_json() + "\n").encode("utf-8")


def read_queue(path: Path) -> Queue:
    """Read a queue with its decisions.

    Raises:
        InputError: A missing file, a line that is not of a review queue, or a sentence twice. Never quotes one.
    """
    check_regular(path)
    lines = ((f"{display_name(path)}: line {number}", line) for number, line, _ in read_lines(path))
    where, first = next(lines, (f"{display_name(path)}: line 1", ""))
    header = _parsed(Header, where, first)
    entries = tuple(_parsed(QueueEntry, where, line) for where, line in lines)
    if len({(entry.record, entry.start, entry.end) for entry in entries}) < len(entries):
        raise InputError(f"{display_name(path)} has a sentence twice.", "Give the file that detect --review wrote.")
    return Queue(header=header, entries=entries)


_L = TypeVar("_L", bound=_Line)


def _parsed(kind: type[_L], where: str, line: str) -> _L:
    try:
        parsed = kind.model_validate_json(line)
        parse_json(line)  # pydantic takes the last of two values
        return parsed
    except RepeatedKeyError:
        raise InputError(f"{where} has a key more than once.", "Keep one of them.") from None
    except ValidationError:
        what = "the first line" if kind is Header else "a sentence"
        # Its message would quote the line.
        raise InputError(
            f"{where} is not {what} of a review queue.", "Give the file that detect --review wrote."
        ) from None
