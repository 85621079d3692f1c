"""The layout of plain text: lines, paragraphs, or the document."""

from collections.abc import Iterator
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import Bad, decoded, decoded_lines, read_lines, without_mark
from atdp_cli.text.corpus.segments import Segment, Selection
from atdp_cli.text.corpus.shards import GoesOn, lines_of


def text_segments(path: Path, selection: Selection, bad: Bad) -> Iterator[Segment]:
    """See `layouts.read_segments`."""
    unit, shard = selection.unit, selection.shard
    if unit == "document":
        yield from _document(path, bad)
        return
    lines = lines_of(path, shard) if unit == "line" else lines_of(path, shard, _paragraphs(path))
    before, record, id_, within = "", -1, "", False
    for number, line, ending in decoded_lines(lines, path, bad):
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


def _paragraphs(path: Path) -> GoesOn:
    """Whether a line goes on the paragraph of the line before; one that cannot be read leaves things as they are."""
    within = False

    def goes_on(number: int, raw: bytes) -> bool:
        nonlocal within
        try:
            line, _ = decoded(raw, path, number)
        except InputError:
            return within
        before, within = within, bool(without_mark(number, line)[1].strip())
        return before and within

    return goes_on


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
