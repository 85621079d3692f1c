"""The layout of CSV and TSV: a header, then one row a record, the text in one column.

The dialect is the one that most programs write: commas (.csv) or tabs (.tsv) between fields; a field that
begins with " runs to the next single ", with "" for one quote, and may hold delimiters and line feeds; a
quote inside an unquoted field is itself. "\\n" or "\\r\\n" ends a row; empty lines are none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atdp_cli.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import (
    MAX_LINE,
    OnError,
    decoded,
    display_name,
    kind_of,
    raw_lines,
    without_ending,
    without_mark,
)

MAX_LINES = 1_000_000
"""The most lines of a row."""

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
"""What may stand between the fields of a row."""

_QUOTE = '"'

_WITHIN = re.compile('[^"]*(?:""[^"]*)*')


@dataclass(frozen=True, slots=True)
class _Row:
    """A row without its last line ending; one without text, behind all others, holds the empty lines at the end.

    Attributes:
        number: Its first line, from 1.
        before: The empty lines and the byte order mark before it.
        error: Why a line of it cannot be read; its other attributes are then not to be relied on.
    """

    number: int
    before: str
    text: str
    ending: str
    error: InputError | None


def separated_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """Read the segments of a CSV or TSV file, as `record.read_segments` does. Faults of the header, and a quote that
    stays open, are never skipped.
    """
    delimiter = _delimiter(path, selection.text_field)
    rows = _rows(path, delimiter)
    header = next(rows, None)
    if header is None or not header.text:
        yield Segment("" if header is None else header.before, None)
        return
    names = _names(header, delimiter, path)
    column = column_of(names, selection.text_field, path)
    key = None if selection.key is None else column_of(names, selection.key, path)
    before = header.before + header.text + header.ending
    record = record_numbers(selection)
    for row in rows:
        before += row.before
        if not row.text:
            continue
        try:
            spans = _fields(row, delimiter, display_name(path), len(names))
        except InputError as error:
            on_error(error)
            continue
        start, end = spans[column]
        written = row.text[start:end]
        id_ = str(row.number) if key is None else _value(row.text[slice(*spans[key])])
        spelled = partial(_spelled, delimiter=delimiter, quoted=written.startswith(_QUOTE))
        yield Segment(before + row.text[:start], _value(written), record(id_), id_, written, spelled)
        before = row.text[end:] + row.ending
    yield Segment(before, None)


def _delimiter(path: Path, text_field: str) -> str:
    """The first of `DELIMITERS` by which the header has the column of the text, that of the suffix before the others;
    where none has, the one by which there are the most columns.
    """
    own = "\t" if kind_of(path) == "tsv" else ","
    columns = {delimiter: _columns(path, delimiter) for delimiter in (own, *DELIMITERS)}
    fitting = (delimiter for delimiter, names in columns.items() if text_field in names)
    return next(fitting, max(columns, key=lambda delimiter: len(columns[delimiter])))


def column_names(path: Path, text_field: str) -> list[str]:
    """The names in the header; none where it is not of the dialect."""
    return _columns(path, _delimiter(path, text_field))


def _columns(path: Path, delimiter: str) -> list[str]:
    """The names in the header; none where it is not of the dialect."""
    try:
        header = next(_rows(path, delimiter), None)
        return [] if header is None else _names(header, delimiter, path)
    except InputError:
        return []


def _names(header: _Row, delimiter: str, path: Path) -> list[str]:
    return [_value(header.text[slice(*span)]) for span in _fields(header, delimiter, display_name(path), None)]


def column_of(names: Sequence[str], name: str, path: Path) -> int:
    """The position of the column `name`.

    Raises:
        InputError: There is none, or more than one. It quotes no name: the first row of a file without a header is a
            record.
    """
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise InputError(f"{display_name(path)} has the column {name} more than once.", "Keep one of them.")
    raise InputError(
        f"{display_name(path)} has no column {name} among its {len(names)}.",
        "Name the column with --text-field, run.id-field or --privacy-unit; the first row must hold the names.",
    )


def _rows(path: Path, delimiter: str) -> Iterator[_Row]:
    pieces: list[str] = []
    number, before, within, error = 0, "", False, None
    size = 0
    for at, raw in raw_lines(path):
        try:
            text, ending = decoded(raw, path, at)
        except InputError as fault:
            # The line's quotes still count, so that the next row begins where it does.
            text, ending = without_ending(raw.decode("utf-8", "surrogateescape"))
            error = error or fault
        mark, text = without_mark(at, text)
        before += mark
        if not within:
            if not text:
                before += ending
                continue
            number = at
        within = _open_after(text, delimiter, within)
        size = size + len(text) if pieces else len(text)
        if size > MAX_LINE or at - number > MAX_LINES:
            long = f"{MAX_LINE >> 20} MiB" if size > MAX_LINE else f"{MAX_LINES:,} lines"
            raise InputError(
                f"{display_name(path)}: the row that begins on line {number} is longer than {long}.",
                'Check that its quotes are closed; write a quote inside a quoted field as "".',
            )
        pieces.append(text)
        if within:
            pieces.append(ending)
            continue
        yield _Row(number, before, "".join(pieces), ending, error)
        pieces, before, error = [], "", None
    if within:
        raise InputError(
            f"{display_name(path)}: a quote in the row that begins on line {number} is never closed.",
            'Close it, or write a quote inside a quoted field as "".',
        )
    if before:
        yield _Row(number, before, "", "", None)


def _open_after(line: str, delimiter: str, within: bool) -> bool:
    """Whether a quoted field is still open after `line`; `within` says whether one was before it."""
    if not within and _QUOTE not in line:
        return False
    position = 0
    while True:
        if within:
            position = _end_of_quoted(line, position)
            if position > len(line):
                return True
        elif line.startswith(_QUOTE, position):
            position, within = position + 1, True
            continue
        position = line.find(delimiter, position) + 1
        within = False
        if position == 0:
            return False


def _end_of_quoted(text: str, position: int) -> int:
    """The place after the quote that closes; beyond the end where none does."""
    match = _WITHIN.match(text, position)
    return (match.end() if match else position) + 1


def _fields(row: _Row, delimiter: str, name: str, count: int | None) -> list[tuple[int, int]]:
    """The range of each field in a row, its quotes included.

    Raises:
        InputError: The row breaks the dialect, or does not have `count` fields.
    """
    where, text = f"{name}: line {row.number}", row.text
    if row.error is not None:
        raise row.error
    if "\0" in text:
        raise InputError(f"{where} holds a NUL byte.", "Check that the file is UTF-8 text.")
    spans = _split(text, delimiter)
    if spans is None:
        raise InputError(
            f"{where}: text follows a closing quote.",
            'Write a quote inside a quoted field as "", and the field in "…".',
        )
    if "\r" in text and any("\r" in text[a:b] and not text.startswith(_QUOTE, a) for a, b in spans):
        raise InputError(f"{where} holds a carriage return outside quotes.", "End rows with a line feed.")
    if count is not None and len(spans) != count:
        raise InputError(
            f"{where}: the row has {len(spans)} fields, the header {count}.",
            f"Put fields that hold a {DELIMITERS[delimiter]} or line feed in quotes.",
        )
    return spans


def _split(text: str, delimiter: str) -> list[tuple[int, int]] | None:
    spans = []
    position = 0
    while True:
        if text.startswith(_QUOTE, position):
            end = _end_of_quoted(text, position + 1)
        else:
            end = text.find(delimiter, position)
            end = len(text) if end < 0 else end
        spans.append((position, end))
        if end >= len(text):
            return spans
        if text[end] != delimiter:
            return None
        position = end + 1


def _value(written: str) -> str:
    return written[1:-1].replace('""', _QUOTE) if written.startswith(_QUOTE) else written


def _spelled(text: str, *, delimiter: str, quoted: bool) -> str:
    """Quote a field that was in quotes or needs them."""
    # An empty text in a row of one field would be an empty line, which is no row.
    if quoted or not text or any(mark in text for mark in (delimiter, _QUOTE, "\r", "\n")):
        return _QUOTE + text.replace(_QUOTE, '""') + _QUOTE
    return text
