"""Rewriting a corpus: only the texts of records change."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace as with_fields
from pathlib import Path

from atdp_cli.corpus.edits import Edit, apply_edits
from atdp_cli.corpus.parquet import write_rows
from atdp_cli.corpus.record import Record, grouped, read_segments, record_of
from atdp_cli.corpus.segments import LINES, Segment, Selection, streams
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.corpus_file import OnError, Writable, check_same_kind, kind_of, raise_error

Edits = Callable[[Iterator[Record]], Iterable[Sequence[Edit]]]
"""Takes the records of a corpus and gives, in the same order, each one's sorted and disjoint edits."""


def rewrite_corpus(
    source: Path,
    target: Path | Writable,
    edits: Edits,
    selection: Selection = LINES,
    on_error: OnError = raise_error,
    *,
    replace: bool = True,
) -> None:
    """Write `source` with edited record texts to `target`.

    The format stays. Plain text: everything outside the records (blank lines, line endings, a byte order
    mark) is kept; where an edit spans two lines of a paragraph the ending between them goes with it. JSON
    Lines, CSV and TSV: everything but the text field's value is kept, also a field's quotes; an edit that
    spans two grouped objects or rows, or two parts of a message, goes to the first of them. Of a conversation the
    strings of the contents are rewritten, and nothing else. Parquet: schema, metadata, row order, the
    other columns' values and the codecs are kept. Compressed as the target's suffix says. What `on_error` skips is
    left out. The target appears whole or not at all, and may be the source. Streams like `read_records`:
    `edits` may look ahead, the rest is not held.

    Args:
        source: The corpus, or `-`.
        target: The file to write; or a stream, which gets what comes before an error, and not Parquet.
        edits: See `Edits`.
        selection: What makes a record.
        on_error: As for `read_records`.
        replace: As for `atomic_write`.

    Raises:
        UsageError: Source and target differ in format, or the unit does not go with it; Parquet for a stream.
        InputError: As for `read_records`; the target's folder is missing.
        RunError: The target cannot be written.
    """
    if isinstance(target, Path):
        check_same_kind(source, target)
    elif kind_of(source) == "parquet":
        raise UsageError("Parquet is not written to standard output.", "Name the file to write.")
    segments = read_segments(source, selection, on_error)
    edited = (_one_by_one if streams(selection) else _all_at_once)(segments, selection, edits)
    with atomic_write(target, replace=replace) if isinstance(target, Path) else nullcontext(target) as stream:
        if kind_of(source) == "parquet":
            write_rows(source, selection, edited, stream)
        else:
            for segment, text in edited:
                stream.write(_encoded(segment, text))


def _one_by_one(segments: Iterator[Segment], selection: Selection, edits: Edits) -> Iterator[tuple[Segment, str]]:
    """All segments in file order with their new texts; the end of the file last."""
    waiting: deque[tuple[Segment, ...]] = deque()

    def records() -> Iterator[Record]:
        for group in grouped(segments, selection):
            waiting.append(group)
            if group[0].text is not None:
                yield record_of(group, selection)

    for changes in edits(records()):
        yield from _edited(waiting.popleft(), changes, joins_lines=selection.joins_lines)
    if len(waiting) != 1 or waiting[0][0].text is not None:
        raise ValueError("edits must give one sequence for every record")
    yield waiting[0][0], ""


def _all_at_once(segments: Iterator[Segment], selection: Selection, edits: Edits) -> Iterator[tuple[Segment, str]]:
    """All segments with their new texts, where the segments of a record are apart."""
    held = list(segments)
    groups = list(grouped(iter(held), selection))[:-1]
    texts: list[Iterator[str]] = []
    for group, changes in zip(groups, edits(record_of(group, selection) for group in groups), strict=True):
        texts.append(iter([text for _, text in _edited(group, changes, joins_lines=False)]))
    for segment in held[:-1]:
        yield segment, next(texts[segment.record])
    yield held[-1], ""


def _edited(group: tuple[Segment, ...], changes: Sequence[Edit], *, joins_lines: bool) -> Iterator[tuple[Segment, str]]:
    """Each segment of a record with its new text.

    A segment owns its text and the line feed that joins it to the next. An edit that spans several leaves
    its text in the first; where `joins_lines`, a line feed that it covers goes from the file too.
    """
    base = 0
    for number, segment in enumerate(group):
        text = segment.text or ""
        base += len(segment.label)
        end = base + len(text)
        here = [
            Edit(
                max(change.start - base, 0),
                min(change.end, end) - base,
                change.text if change.start >= base else "",
            )
            for change in changes
            if change.start <= end and change.end > base
        ]
        joined = joins_lines and number > 0 and any(c.start < base <= c.end for c in changes)
        yield with_fields(segment, before="") if joined else segment, apply_edits(text, here).text
        base = end + 1


def _encoded(segment: Segment, text: str) -> bytes:
    unchanged = segment.written if text == segment.text else None
    return (segment.before + (segment.spelled(text) if unchanged is None else unchanged)).encode()
