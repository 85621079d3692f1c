"""The layout of plain text: lines, paragraphs, or the document."""

from collections.abc import Iterator
from pathlib import Path

from atdp_cli.text.corpora.segments import Segment
from atdp_cli.text.files import Bad, read_lines, without_mark


def text_segments(path: Path, unit: str, bad: Bad) -> Iterator[Segment]:
    """See `layouts.read_segments`."""
    if unit == "document":
        yield from _document(path, bad)
        return
    before, record, id_, within = "", -1, "", False
    for number, line, ending in read_lines(path, bad):
        mark, text = without_mark(number, line)
        if not text.strip():
            before += line + ending
            within = False
            continue
        if unit == "line" or not within:
            record, id_, within = record + 1, str(number), True
        yield Segment(before + mark, text, record, id_)
        before = ending
    yield Segment(before, None)


def _document(path: Path, bad: Bad) -> Iterator[Segment]:
    pieces: list[str] = []
    mark = ending = ""
    for number, line, line_ending in read_lines(path, bad):
        found, text = without_mark(number, line)
        mark = mark or found
        pieces += (ending, text)
        ending = line_ending
    text = "".join(pieces)
    if text.strip():
        yield Segment(mark, text, 0, "1")
    yield Segment(ending, None)
