"""Every format's layout by one name. Reading and rewriting share this one parse.

So a rewritten file can only differ inside record texts.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.corpus_file import (
    KIND_NAMES,
    Kind,
    OnError,
    check_readable,
    display_name,
    is_rereadable,
    kind_of,
    raise_error,
)
from atdp_cli.text.corpus.csv import separated_segments
from atdp_cli.text.corpus.jsonl import json_segments
from atdp_cli.text.corpus.parquet import parquet_segments
from atdp_cli.text.corpus.plain_text import text_segments
from atdp_cli.text.corpus.segments import Segment, Selection, streams
from atdp_cli.text.corpus.speakers import parse_speakers

_LAYOUTS: dict[Kind, Callable[[Path, Selection, OnError], Iterator[Segment]]] = {
    "text": text_segments,
    "jsonl": json_segments,
    "csv": separated_segments,
    "tsv": separated_segments,
    "parquet": parquet_segments,
}


def read_segments(path: Path, selection: Selection, on_error: OnError = raise_error) -> Iterator[Segment]:
    """All segments in file order, ending with one whose text is None.

    Checks the path and the selection at once, the content while iterating. What `on_error` skips is in no
    segment, neither as text nor as what stands before one.
    A shard may have no records; a whole corpus must have some.

    Raises:
        UsageError: The unit does not go with the format.
        InputError: See `records.read_records`.
    """
    check_readable(path)
    kind = kind_of(path)
    _check_unit(path, selection)
    _check_shard(path, selection)
    segments = _LAYOUTS[kind](path, selection, on_error)
    if selection.shard is not None:
        return segments
    return _nonempty(segments, path, "" if kind == "text" else f" in the field {selection.text_field}")


def _check_unit(path: Path, selection: Selection) -> None:
    kind = kind_of(path)
    if selection.turns is not None:
        parse_speakers(selection.turns)
        if kind != "text" or selection.unit != "paragraph":
            raise UsageError(
                f"--turns reads paragraphs of plain text, and {display_name(path)} is not read so.",
                "Use --privacy-unit paragraph and plain text, or leave --turns out.",
            )
    if kind == "text":
        if selection.unit not in ("line", "paragraph", "document"):
            raise UsageError(
                f"--privacy-unit {selection.unit} names a field, and {display_name(path)} is plain text.",
                "Use --privacy-unit line, paragraph or document, or a corpus with fields (.jsonl, .csv, .parquet).",
            )
        return
    if selection.unit in ("paragraph", "document"):
        raise UsageError(
            f"--privacy-unit {selection.unit} is for plain text, and {display_name(path)} is {KIND_NAMES[kind]}.",
            "Use --privacy-unit line (one object or row a record) or the name of a field whose value groups them.",
        )
    if selection.unit != "line" and selection.id_field is not None:
        raise UsageError("--id-field does not go with a --privacy-unit that names a field.", "Leave --id-field out.")


def _check_shard(path: Path, selection: Selection) -> None:
    if selection.shard is None:
        return
    if not is_rereadable(path):
        raise UsageError(
            f"--shard splits a file by its size, and {display_name(path)} has none.",
            "Write it to a file first, and name that.",
        )
    if selection.unit == "document":
        raise UsageError(
            "--shard splits a corpus between records, and --privacy-unit document makes it one record.",
            "Leave one of them out.",
        )
    if not streams(selection):
        raise UsageError(
            f"--shard needs records that stand together, and --privacy-unit {selection.unit} gathers them from all of "
            "the file.",
            "Leave one of them out, or sort and split the file yourself.",
        )


def _nonempty(segments: Iterator[Segment], path: Path, where: str) -> Iterator[Segment]:
    empty = True
    for segment in segments:
        if segment.text is None and empty:
            raise InputError(
                f"{display_name(path)} holds no records: no text{where}.", "Check that it is the right file."
            )
        empty = False
        yield segment
