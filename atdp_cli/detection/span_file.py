"""Spans files: one JSON line a record, in the corpus's order."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, spans_within_borders
from atdp_cli.detection.detect import confidence
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import check_regular, display_name, read_lines, without_mark
from atdp_cli.files.documents import RepeatedKeyError, parse_json

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def spans_line(record_id: str, spans: Iterable[Span]) -> str:
    """The line of a spans file for one record, without its ending.

    `{"id": "12", "spans": [{"start": 0, "end": 5, "label": "PERSON", "source": "ner", "confidence": 0.7}]}`;
    positions are code points of the record's text, end exclusive.
    """
    members = [
        {
            "start": span.start,
            "end": span.end,
            "label": span.label,
            "source": span.source,
            "confidence": confidence(span.label, span.source),
        }
        for span in spans
    ]
    return json.dumps({"id": record_id, "spans": members})


def read_spans(path: Path, records: Iterable[Record]) -> Iterator[tuple[Record, tuple[Span, ...]]]:
    """Each record with its spans from a file that has one line for every record, in the same order.

    The spans are sorted and sensitive at every tier. Members other than those of `spans_line` are ignored;
    `source` may be missing and is then `file`. Those that reach over several rows of a record, or messages of a
    conversation, are cut there. One line and one record are in memory at a time.

    Raises:
        InputError: A line is malformed or belongs to another record, or there are too few or too many.
    """
    check_regular(path)
    return _pairs(path, records)


def _pairs(path: Path, records: Iterable[Record]) -> Iterator[tuple[Record, tuple[Span, ...]]]:
    remaining = iter(records)
    number = 0
    for number, line, _ in read_lines(path):
        where = f"{display_name(path)}: line {number}"
        record = next(remaining, None)
        if record is None:
            raise InputError(
                f"{where} is one too many: the corpus has fewer records.", "Use the spans file of this corpus."
            )
        yield record, spans_within_borders(record, _spans(without_mark(number, line)[1], record, where))
    if next(remaining, None) is not None:
        raise InputError(
            f"{display_name(path)} ends after line {number}, but the corpus has more records.",
            "Use the spans file of this corpus, with one line a record.",
        )


def _spans(line: str, record: Record, where: str) -> tuple[Span, ...]:
    try:
        value = parse_json(line)
    except RepeatedKeyError as error:
        raise InputError(f"{where} has a key more than once.", "Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON.", "Each line must be one JSON object.") from error
    if not isinstance(value, dict) or not isinstance(value.get("spans"), list):
        raise InputError(f"{where} is not an object with a list of spans.", 'Write {"id": "1", "spans": []}.')
    if value.get("id") != record.id:
        raise InputError(
            f"{where} has another id than the record at the same place of the corpus.",
            "Use the spans file of this corpus, in the corpus's order, with the ids as strings.",
        )
    return tuple(
        sorted(
            _span(member, len(record.text), f"{where}, span {at}") for at, member in enumerate(value["spans"], start=1)
        )
    )


def _span(member: object, length: int, where: str) -> Span:
    if not isinstance(member, dict):
        raise InputError(f"{where} is not an object.", "Give start, end and label.")
    start, end = member.get("start"), member.get("end")
    # type() and not isinstance: True is an int to Python.
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise InputError(
            f"{where} needs whole numbers with 0 ≤ start < end ≤ {length}.",
            "Count code points of the record's text from 0, the end exclusive.",
        )
    label, source = member.get("label"), member.get("source", "file")
    for name, text in (("label", label), ("source", source)):
        if not isinstance(text, str) or not _NAME.fullmatch(text):
            raise InputError(
                f"{where} needs a {name} of up to 40 ASCII letters, digits, _ or - that begins with a letter.",
                "A label such as PERSON becomes the placeholder.",
            )
    return Span(start, end, str(label), str(source), Tier.LOW_ENTITY)
