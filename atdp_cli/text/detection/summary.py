"""What a pass over a corpus flagged, in counts and shapes, without any of its text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from atdp_cli.text.detection.spans import Span

LONGEST_SHAPE = 24
"""Characters of a shape."""

COUNTERS = 256
"""Texts that are counted at once. A text's count is too low by at most the number of spans over this."""

FREQUENT_SHARE, FEWEST_SPANS = 0.1, 20
"""A text that makes up more than this share of so many spans or more is worth a warning."""


@dataclass(frozen=True, kw_only=True)
class FrequentText:
    """One text that makes up much of what is flagged.

    Attributes:
        count: How often it is flagged, at least.
    """

    label: str
    shape: str
    count: int


@dataclass(kw_only=True)
class FlaggedSummary:
    """Counts of flagged spans; memory is bounded, however many there are.

    Attributes:
        by_label: How many spans have a label.
        shapes: The shape of the first span of each label.
    """

    spans: int = 0
    by_label: Counter[str] = field(default_factory=Counter)
    shapes: dict[str, str] = field(default_factory=dict)
    _texts: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def add(self, text: str, spans: Iterable[Span]) -> None:
        """Count the merged spans of a record."""
        for span in spans:
            self.spans += 1
            self.by_label[span.label] += 1
            flagged = text[span.start : span.end]
            self.shapes.setdefault(span.label, character_shape(flagged))
            self._count((flagged.casefold(), span.label))

    def _count(self, key: tuple[str, str]) -> None:
        """Source: Misra and Gries 1982, "Finding repeated elements"."""
        if key in self._texts or len(self._texts) < COUNTERS:
            self._texts[key] = self._texts.get(key, 0) + 1
            return
        self._texts = {text: count - 1 for text, count in self._texts.items() if count > 1}

    def most_frequent(self) -> FrequentText | None:
        """The text that makes up more than `FREQUENT_SHARE` of the spans; None where none does, or there are few."""
        if self.spans < FEWEST_SPANS or not self._texts:
            return None
        (text, label), count = max(self._texts.items(), key=lambda item: item[1])
        if count <= FREQUENT_SHARE * self.spans:
            return None
        return FrequentText(label=label, shape=character_shape(text), count=count)


def character_shape(text: str) -> str:
    """A text's shape: 0 for digits, A and a for letters, all else as it is; cut after `LONGEST_SHAPE` characters.

    >>> character_shape("Ms. O'Neill, 41")
    "Aa. A'Aaaaa, 00"
    """
    marks = "".join(_mark(character) for character in text[: LONGEST_SHAPE + 1])
    return marks if len(marks) <= LONGEST_SHAPE else f"{marks[: LONGEST_SHAPE - 1]}…"


def _mark(character: str) -> str:
    if character.isdecimal():
        return "0"
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return character if character.isprintable() else " "
