"""The result of a pass over a corpus, in counts and shapes, without any of its text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from atdp_cli.corpus.spans import Span
from atdp_cli.errors import InputError
from atdp_cli.files.documents import Frozen

LONGEST_SHAPE = 24
"""Characters of a shape."""

COUNTERS = 256
"""Texts that are counted at once. A text's count is too low by at most the number of spans over this."""

FREQUENT_SHARE, FEWEST_SPANS = 0.1, 20
"""A text that makes up more than this share of so many spans or more is worth a warning."""


class FrequentText(Frozen):
    """One text that makes up much of what is flagged.

    Attributes:
        count: How often it is flagged, at least.
    """

    label: str
    shape: str
    count: int


class FlaggedSummary(Frozen):
    """The flagged spans of a corpus.

    Attributes:
        by_label: How many spans have a label, the most frequent first.
        shapes: The shape of the first span of each label.
        most_frequent: The text that makes up more than `FREQUENT_SHARE` of the spans; None where none does, or there
            are few.
    """

    spans: int
    by_label: dict[str, int]
    shapes: dict[str, str]
    most_frequent: FrequentText | None


@dataclass(kw_only=True)
class CrosscheckCounts:
    """How a cross-check went, in sentences.

    Attributes:
        asked: That were sent.
        known: Whose answer was known, from this run or one before.
        disagreements: About which model and detector disagree; unusable answers are among them.
        unusable: Whose answer was neither yes nor no, twice.
    """

    asked: int = 0
    known: int = 0
    disagreements: int = 0
    unusable: int = 0


@dataclass(kw_only=True)
class CorpusCounts:
    """What is counted in one pass over a corpus; memory is bounded, however long it is. Tokens are spaCy's.

    Attributes:
        crosscheck: None where nobody was asked.
    """

    records: int = 0
    skipped: int = 0
    tokens: int = 0
    sensitive_tokens: int = 0
    crosscheck: CrosscheckCounts | None = None
    _by_label: Counter[str] = field(default_factory=Counter, repr=False)
    _shapes: dict[str, str] = field(default_factory=dict, repr=False)
    _texts: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def skip(self, _: InputError) -> None:
        """Count a line or row that cannot be read: an `OnError`."""
        self.skipped += 1

    def add(self, text: str, spans: Iterable[Span]) -> None:
        """Count a record with its merged spans."""
        self.records += 1
        for span in spans:
            self._by_label[span.label] += 1
            flagged = text[span.start : span.end]
            self._shapes.setdefault(span.label, character_shape(flagged))
            self._count((flagged.casefold(), span.label))

    def _count(self, key: tuple[str, str]) -> None:
        """Source: Misra and Gries 1982, "Finding repeated elements"."""
        if key in self._texts or len(self._texts) < COUNTERS:
            self._texts[key] = self._texts.get(key, 0) + 1
            return
        self._texts = {text: count - 1 for text, count in self._texts.items() if count > 1}

    def flagged(self) -> FlaggedSummary:
        """The spans that were counted."""
        return FlaggedSummary(
            spans=self._by_label.total(),
            by_label=dict(self._by_label.most_common()),
            shapes=self._shapes,
            most_frequent=self._most_frequent(),
        )

    def _most_frequent(self) -> FrequentText | None:
        spans = self._by_label.total()
        if spans < FEWEST_SPANS or not self._texts:
            return None
        (text, label), count = max(self._texts.items(), key=lambda item: item[1])
        if count <= FREQUENT_SHARE * spans:
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


class QueueSummary(Frozen):
    """A queue for `atdp review`, with how many sentences of each stratum it has."""

    queue: str
    flagged: int
    unflagged: int


class DetectionSummary(Frozen):
    """What `detect` returns, and `atdp detect --json` prints. Tokens are spaCy's.

    Attributes:
        skipped: Lines or rows that could not be read.
        sensitive_share: Sensitive tokens over all tokens, 0 for an empty corpus.
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
    flagged: FlaggedSummary
    crosscheck: CrosscheckCounts | None
    review: QueueSummary | None


class RedactionSummary(Frozen):
    """What `redact` returns, and `atdp redact --json` prints.

    Attributes:
        output: The redacted corpus; None where it stays in memory.
        crosscheck: None where nobody was asked.
    """

    schema_version: Literal[1] = 1
    output: str | None
    records: int
    skipped: int
    flagged: FlaggedSummary
    crosscheck: CrosscheckCounts | None
