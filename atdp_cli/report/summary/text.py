"""What `detect --json` and `redact --json` print, and a line of a spans file, as models."""

from typing import Literal

from atdp_cli.report.numbers import Frozen


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


class FlaggedSpan(Frozen):
    """Characters `start` to `end` (code points, end exclusive) of a record, and the chance that the label is right."""

    start: int
    end: int
    label: str
    source: str
    confidence: float


class RecordSpans(Frozen):
    """A line of a spans file: what is sensitive in a record."""

    id: str
    spans: tuple[FlaggedSpan, ...]
