"""The layout of plain text: lines, paragraphs, or the document."""

from collections.abc import Iterator
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import OnError, decoded, decoded_lines, display_name, read_lines, without_mark
from atdp_cli.text.corpus.segments import Segment, Selection
from atdp_cli.text.corpus.shards import Continues, lines_of
from atdp_cli.text.corpus.speakers import parse_speakers


def text_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """See `formats.read_segments`."""
    unit, shard = selection.unit, selection.shard
    if unit == "document":
        yield from _document(path, on_error)
        return
    lines = lines_of(path, shard) if unit == "line" else lines_of(path, shard, _paragraphs(path))
    speakers = None if selection.turns is None else parse_speakers(selection.turns)
    before, record, id_, within = "", -1, "", False
    turn, role = -1, ""
    for number, line, ending in decoded_lines(lines, path, on_error):
        mark, text = without_mark(number, line)
        if not text.strip():
            before += line + ending
            within = False
            continue
        label = 0
        if speakers is not None:
            said = speakers.at(text)
            if said is not None:
                (role, label), turn = said, turn + 1 if within else 0
            elif not within:
                on_error(
                    InputError(
                        f"{display_name(path)}: line {number} begins a paragraph, and no speaker that --turns knows.",
                        "Let each conversation begin with a speaker, or widen the expression.",
                    )
                )
                continue
        if unit == "line" or not within:
            record, id_, within = record + 1, str(number), True
        yield Segment(before + mark + text[:label], text[label:], record, id_, turn=turn, role=role)
        before = ending
    yield Segment(before, None)


def _paragraphs(path: Path) -> Continues:
    """Whether a line continues the paragraph of the line before; one that cannot be read changes nothing."""
    within = False

    def continues(number: int, raw: bytes) -> bool:
        nonlocal within
        try:
            line, _ = decoded(raw, path, number)
        except InputError:
            return within
        before, within = within, bool(without_mark(number, line)[1].strip())
        return before and within

    return continues


def _document(path: Path, on_error: OnError) -> Iterator[Segment]:
    pieces: list[str] = []
    mark = ending = ""
    for number, line, line_ending in read_lines(path, on_error):
        here, text = without_mark(number, line)
        mark = mark or here
        pieces += (ending, text)
        ending = line_ending
    text = "".join(pieces)
    if text.strip():
        yield Segment(mark, text, 0, "1")
    yield Segment(ending, None)
