"""The corpus's own numbers: which of them to test, out of the spans that `atdp detect` found."""

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from atdp_cli.audit.alternatives import FEWEST_DIGITS, MOST_DIGITS
from atdp_cli.errors import UsageError
from atdp_cli.files.corpus_file import LONE_SURROGATE, OnError, kind_of, raise_error
from atdp_cli.text.corpus.records import Record, Unit, read_records
from atdp_cli.text.corpus.split import BUILT_IN_UNITS
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.detection.spans import Span, merge

MOST = 50

_SEED = 8  # of the choice: fixed, so that a model's figures never change


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedNumber:
    """A number of the corpus. Its text never leaves memory, and a `repr` does not show it.

    Attributes:
        record: Which record of the corpus, from 1: the line of the spans file.
        line: The line of the corpus on which the record begins, from 1; None where the corpus has no lines.
        start, end: Code points of the record's text, end exclusive.
        label: What the detector took it for.
        text: The whole record's, lone surrogates replaced.
    """

    record: int
    line: int | None
    start: int
    end: int
    label: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedNumbers:
    """The numbers to test, and how many others there are.

    Attributes:
        secrets: In the corpus's order, at most as many as were requested.
        eligible: Numbers that could be tested, of which `secrets` are a uniform sample.
        skipped_short: Spans of fewer than `FEWEST_DIGITS` digits: too few alternatives for a meaningful rank.
        skipped_long: Spans of more than `MOST_DIGITS` digits.
        skipped_repeated: Spans whose text is in the same record before: copying it takes no memory.
    """

    secrets: tuple[LocatedNumber, ...]
    eligible: int
    skipped_short: int
    skipped_long: int
    skipped_repeated: int


def find_numbers(
    corpus: Path,
    spans: Path,
    *,
    unit: Unit = "line",
    text_field: str = "text",
    id_field: str | None = None,
    turns: str | None = None,
    on_error: OnError = raise_error,
    most: int = MOST,
) -> LocatedNumbers:
    """Choose at most `most` of a corpus's numbers, uniformly and the same in every run.

    A number is a span of the file that holds ASCII digits; spans that overlap are one. The corpus is read once, and
    of its texts only those of the chosen records are kept.

    Args:
        spans: What `atdp detect` wrote for this corpus.
        unit, text_field, id_field, turns, on_error: As for `read_records`, and as they were given to `atdp detect`.

    Raises:
        UsageError: `most` is below 1, the unit does not go with the format, or the corpus holds conversations.
        InputError: A file cannot be read, or the spans are not this corpus's.
    """
    if most < 1:
        raise UsageError(f"{most} secrets cannot be tested.", "Ask for one or more.")
    tally: Counter[str] = Counter()
    records = read_records(corpus, unit=unit, text_field=text_field, id_field=id_field, turns=turns, on_error=on_error)
    numbered = unit in BUILT_IN_UNITS and id_field is None and kind_of(corpus) != "parquet"
    kept: list[LocatedNumber] = []
    generator = np.random.default_rng(_SEED)
    for seen, secret in enumerate(_eligible(read_spans(spans, records), tally, numbered=numbered)):
        # Of all that have been seen, each is kept with the same chance (Vitter 1985, algorithm R).
        place = seen if seen < most else int(generator.integers(seen + 1))
        if place < most:
            kept[place : place + 1] = [secret]
    return LocatedNumbers(
        secrets=tuple(sorted(kept, key=lambda secret: (secret.record, secret.start))),
        eligible=tally["eligible"],
        skipped_short=tally["short"],
        skipped_long=tally["long"],
        skipped_repeated=tally["repeated"],
    )


def _eligible(
    records: Iterable[tuple[Record, Sequence[Span]]], tally: Counter[str], *, numbered: bool
) -> Iterator[LocatedNumber]:
    """The numbers that can be tested; counts them, and what is skipped."""
    for number, (record, spans) in enumerate(records, start=1):
        if record.turns:
            raise UsageError(
                "Numbers are ranked in texts, and the corpus holds conversations.",
                "Map them with atdp audit-corpus, or plant canaries with plant-canary --role.",
            )
        for span in merge(spans):
            kind = _kind(record.text, span)
            if kind is not None:
                tally[kind] += 1
            if kind == "eligible":
                yield LocatedNumber(
                    record=number,
                    line=int(record.id) if numbered else None,
                    start=span.start,
                    end=span.end,
                    label=span.label,
                    text=LONE_SURROGATE.sub("\ufffd", record.text),
                )


def _kind(text: str, span: Span) -> str | None:
    """What becomes of a span: `eligible`, or why it is skipped; None if it is no number."""
    number = text[span.start : span.end]
    digits = sum(letter in string.digits for letter in number)
    if digits == 0:
        return None
    if digits < FEWEST_DIGITS:
        return "short"
    if digits > MOST_DIGITS:
        return "long"
    return "repeated" if number in text[: span.start] else "eligible"
