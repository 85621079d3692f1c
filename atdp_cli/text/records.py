"""Records: the privacy unit, read from a corpus."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One privacy unit.

    Attributes:
        id: Unique in the corpus; for a text file the number of the unit's first line, from 1.
        text: The text, without its line ending.
    """

    id: str
    text: str
