"""The result of a pass over a corpus, in counts and shapes, without any of its text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from atdp_cli.corpus.spans import Span
from atdp_cli.files.documents import Frozen

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


class CrosscheckCounts(Frozen):
    """How a cross-check went, in sentences.

    Attributes:
        asked: That were sent.
        known: Whose answer was known.
        disagreements: About which model and detector disagree; unusable answers are among them.
        unusable: Whose answer was neither yes nor no, twice.
    """

    asked: int
    known: int
    disagreements: int
    unusable: int


class QueueSummary(Frozen):
    """A queue for `atdp review`, with how many sentences of each stratum it has."""

    queue: str
    flagged: int
    unflagged: int


class DetectionSummary(Frozen):
    """`atdp detect --json`. Tokens are spaCy's.

    Attributes:
        skipped: Lines or rows that could not be read.
        sensitive_share: Sensitive tokens over all tokens, 0 for an empty corpus.
        by_label: How many spans have a label, the most frequent first.
        shapes: The shape of the first span of each label.
        crosscheck: None where nobody was asked.
        review: None where no queue was asked for.
    """

    schema_version: Literal[1] = 1
    tier: Literal["low-entity", "high-entity", "low-contextual", "high-contextual"]
    records: int
    skipped: int
    tokens: int
    sensitive_tokens: int
    sensitive_share: float
    by_label: dict[str, int]
    shapes: dict[str, str]
    crosscheck: CrosscheckCounts | None
    review: QueueSummary | None


class RedactionSummary(Frozen):
    """`atdp redact --json`.

    Attributes:
        output: The redacted corpus; None where it stays in memory.
        crosscheck: None where nobody was asked.
    """

    schema_version: Literal[1] = 1
    output: str | None
    records: int
    skipped: int
    crosscheck: CrosscheckCounts | None
