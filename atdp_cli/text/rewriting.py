"""Rewriting a corpus: record texts change, every other byte of the file stays."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from atdp_cli.text.files import LONE_SURROGATE, Writable, check_same_kind, written_whole
from atdp_cli.text.records import Record, Unit, grouped, record_of, streams
from atdp_cli.text.redaction import Edit, apply_edits
from atdp_cli.text.segments import Segment, Selection, read_segments

Edits = Callable[[Iterator[Record]], Iterable[Sequence[Edit]]]
"""Takes the records of a corpus and gives, in the same order, each one's sorted and disjoint edits."""


def rewrite_corpus(
    source: Path,
    target: Path,
    edits: Edits,
    *,
    unit: Unit = "line",
    text_field: str = "text",
    id_field: str | None = None,
) -> int:
    """Write `source` with edited record texts to `target`, and return the number of records.

    The format stays. Plain text: everything outside the records (blank lines, line endings, a byte order
    mark) is kept; where an edit spans two lines of a paragraph the ending between them goes with it. JSON
    Lines: everything but the text field's value is kept; an edit that spans two grouped objects goes to
    the first of them. Compressed as the target's suffix says. The target appears whole or not at all, and
    may be the source. Streams like `read_records`: `edits` may look ahead, the rest is not held.

    Args:
        source: The corpus, or `-`.
        target: The file to write.
        edits: See `Edits`.
        unit, text_field, id_field: As for `read_records`.

    Raises:
        UsageError: Source and target differ in format, or the unit does not go with it.
        InputError: As for `read_records`; the target's folder is missing.
        RunError: The target cannot be written.
    """
    check_same_kind(source, target)
    selection = Selection(unit, text_field, id_field)
    segments = read_segments(source, selection)
    write = _write_streaming if streams(selection) else _write_whole
    with written_whole(target) as stream:
        return write(segments, selection, edits, stream)


def _write_streaming(segments: Iterator[Segment], selection: Selection, edits: Edits, stream: Writable) -> int:
    waiting: deque[tuple[Segment, ...]] = deque()

    def records() -> Iterator[Record]:
        for group in grouped(segments, selection):
            waiting.append(group)
            if group[0].text is not None:
                yield record_of(group)

    count = 0
    for changes in edits(records()):
        for segment, after in _edited(waiting.popleft(), changes, joins_lines=True):
            stream.write(_encoded(segment, after))
        count += 1
    if len(waiting) != 1 or waiting[0][0].text is not None:
        raise ValueError("edits must give one sequence for every record")
    stream.write(waiting[0][0].before.encode())
    return count


def _write_whole(segments: Iterator[Segment], selection: Selection, edits: Edits, stream: Writable) -> int:
    held = list(segments)
    groups = list(grouped(iter(held), selection))[:-1]
    texts: list[Iterator[str]] = []
    for group, changes in zip(groups, edits(record_of(group) for group in groups), strict=True):
        texts.append(iter([text for _, text in _edited(group, changes, joins_lines=False)]))
    for segment in held[:-1]:
        stream.write(_encoded(segment, next(texts[segment.record])))
    stream.write(held[-1].before.encode())
    return len(groups)


def _edited(group: tuple[Segment, ...], changes: Sequence[Edit], *, joins_lines: bool) -> Iterator[tuple[Segment, str]]:
    """Each segment of a record with its new text.

    A segment owns its text and the line feed that joins it to the next. An edit that spans several leaves
    its text in the first; where `joins_lines`, a line feed that it covers goes from the file too.
    """
    base = 0
    for number, segment in enumerate(group):
        text = segment.text or ""
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
        yield replace(segment, before="") if joined else segment, apply_edits(text, here).text
        base = end + 1


def _encoded(segment: Segment, text: str) -> bytes:
    if not segment.quoted:
        return (segment.before + text).encode()
    if text == segment.text:
        return (segment.before + segment.written).encode()
    quoted = json.dumps(text, ensure_ascii=False)
    # A lone surrogate has no UTF-8; JSON can only write it as an escape.
    return (segment.before + LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)).encode()
