"""How often what the detector flags is right, and which spans a user wants."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from atdp_cli.errors import UsageError, did_you_mean
from atdp_cli.text.detection.spans import Span

_LABEL = re.compile("[A-Z][A-Z0-9_]{0,39}")

_OF_ENTITIES = {
    "PERSON": 0.9,
    "PER": 0.9,
    "GPE": 0.9,
    "LOC": 0.6,
    "FAC": 0.8,
    "ORG": 0.7,
    "DATE": 0.5,
    "PROPN": 0.9,
}
"""By label: the share of spaCy's entities, and of the tagger's names, that annotators label too."""

_OF_PATTERNS = {"NUMBER": 0.9, "CODE": 0.9, "USERNAME": 0.9, "PERSON": 0.9}

OTHER_ENTITY, PATTERN, CERTAIN = 0.4, 0.95, 1.0


def confidence(label: str, source: str) -> float:
    """The chance that a span with this label and source is what it says, from 0 to 1.

    For entities and patterns it is the mean over the labelled sets with ten such spans or more, rounded to a tenth
    (`python -m tests.benchmarks.detection --confidence`). Grammar, terms of a list and spans of a file are certain.
    """
    if source == "pattern":
        return _OF_PATTERNS.get(label, PATTERN)
    if source == "ner" or (source == "pos" and label == "PROPN"):
        return _OF_ENTITIES.get(label, OTHER_ENTITY)
    return CERTAIN


@dataclass(frozen=True, kw_only=True)
class LabelFilter:
    """Which spans count, by their labels and confidence.

    Attributes:
        entities: The labels that count, sorted; empty for all.
        exclude: Labels that do not.
        min_confidence: The least `confidence` of a span that counts, from 0 to 1.
    """

    entities: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    min_confidence: float = 0.0

    def counts(self, span: Span) -> bool:
        """Whether a span counts. Terms of --deny and what a cross-check disputes always do, unless excluded."""
        if span.label in self.exclude:
            return False
        if span.source in ("deny", "crosscheck"):
            return True
        wanted = not self.entities or span.label in self.entities
        return wanted and confidence(span.label, span.source) >= self.min_confidence

    def apply(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """The spans that count."""
        return tuple(span for span in spans if self.counts(span))


ALL_LABELS = LabelFilter()


def parse_labels(option: str, text: str, known: frozenset[str] | None) -> tuple[str, ...]:
    """Labels separated by commas, each once, sorted.

    Args:
        option: Its name, for messages.
        known: The labels that there are; None where a pipeline may have others.

    Raises:
        UsageError: One is not known, or is no word.
    """
    labels = sorted({label.strip().upper() for label in text.split(",")})
    for label in labels:
        if not _LABEL.fullmatch(label) or (known is not None and label not in known):
            hint = did_you_mean(label, sorted(known or ())) or f"There are {', '.join(sorted(known or ()))}."
            raise UsageError(f"--{option} has {ascii(label)[:50]}, which is no label.", hint)
    return tuple(labels)
