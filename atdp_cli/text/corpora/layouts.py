"""Every format's layout by one name. Reading and rewriting share this one parse.

So a rewritten file can only differ inside record texts.
"""

from collections.abc import Iterator
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.text.corpora.jsonlines import json_segments
from atdp_cli.text.corpora.parquet import parquet_segments
from atdp_cli.text.corpora.plaintext import text_segments
from atdp_cli.text.corpora.segments import Segment, Selection
from atdp_cli.text.corpora.separated import separated_segments
from atdp_cli.text.files import NAMES, Bad, check_readable, kind_of, refuse, shown


def read_segments(path: Path, selection: Selection, bad: Bad = refuse) -> Iterator[Segment]:
    """All segments in file order, ending with one whose text is None.

    Checks the path and the selection at once, the content while iterating. What `bad` skips is in no
    segment, neither as text nor as what stands before one.

    Raises:
        UsageError: The unit does not go with the format.
        InputError: See `records.read_records`.
    """
    check_readable(path)
    kind = kind_of(path)
    _check_unit(path, selection)
    if kind == "text":
        return _nonempty(text_segments(path, selection.unit, bad), path, "")
    where = f" in the field {selection.text_field}"
    if kind == "jsonl":
        return _nonempty(json_segments(path, selection, bad), path, where)
    if kind == "parquet":
        return _nonempty(parquet_segments(path, selection, bad), path, where)
    return _nonempty(separated_segments(path, selection, bad), path, where)


def _check_unit(path: Path, selection: Selection) -> None:
    kind = kind_of(path)
    if kind == "text":
        if selection.unit not in ("line", "paragraph", "document"):
            raise UsageError(
                f"--unit {selection.unit} names a field, and {shown(path)} is plain text.",
                "Use --unit line, paragraph or document, or a corpus with fields (.jsonl, .csv, .parquet).",
            )
        return
    if selection.unit in ("paragraph", "document"):
        raise UsageError(
            f"--unit {selection.unit} is for plain text, and {shown(path)} is {NAMES[kind]}.",
            "Use --unit line (one object or row a record) or the name of a field whose value groups them.",
        )
    if selection.unit != "line" and selection.id_field is not None:
        raise UsageError("--id-field does not go with a --unit that names a field.", "Leave --id-field out.")


def _nonempty(segments: Iterator[Segment], path: Path, where: str) -> Iterator[Segment]:
    found = False
    for segment in segments:
        if segment.text is None and not found:
            raise InputError(f"{shown(path)} holds no records: no text{where}.", "Check that it is the right file.")
        found = True
        yield segment
