"""Edits of a record's text, and where the new texts stand after they are applied."""

from collections.abc import Sequence
from dataclasses import dataclass

from atdp_cli.corpus.spans import Range


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` (end exclusive) of a record's text give way to `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text after edits.

    Attributes:
        places: Where the texts of the edits (placeholders or decoys) ended up in `text`, sorted and disjoint.
    """

    text: str
    places: tuple[Range, ...]


def apply_edits(text: str, changes: Sequence[Edit]) -> EditedText:
    """Apply sorted, disjoint edits to a text."""
    pieces: list[str] = []
    places: list[Range] = []
    position = length = 0
    for change in changes:
        start = length + change.start - position
        length = start + len(change.text)
        pieces += (text[position : change.start], change.text)
        places.append((start, length))
        position = change.end
    pieces.append(text[position:])
    return EditedText("".join(pieces), tuple(places))
