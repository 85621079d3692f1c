"""From findings to spans: the pass over the records, then label filters and people's corrections."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Range, Span, Tier, at_tier, by_place, sentences_within_borders, spans_within_borders
from atdp_cli.detection.entities import LABEL_OF
from atdp_cli.detection.executor import OpenReader, in_process
from atdp_cli.detection.identifiers import IDENTIFIER_LABELS
from atdp_cli.detection.refine import refined
from atdp_cli.detection.scan import Finding, LookupFinding, StoreFinding, scan
from atdp_cli.detection.term_lists import allowed, denied
from atdp_cli.errors import UsageError, did_you_mean
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.files.regexes import Pattern
from atdp_cli.replacement.placeholders import pattern_of

_LABEL = re.compile("[A-Z][A-Z0-9_]{0,39}")

_OF_ENTITIES = {
    "PERSON": 0.9,
    "PER": 0.9,
    "GPE": 0.9,
    "LOC": 0.6,
    "FAC": 0.8,
    "ORG": 0.7,
    "DATE": 0.6,
    "PROPN": 0.9,
}
"""By label: the share of spaCy's entities, and of the tagger's names, that annotators label too."""

_OF_PATTERNS = {"NUMBER": 0.9, "CODE": 0.9, "USERNAME": 0.9, "PERSON": 0.9}

OTHER_ENTITY, PATTERN, CERTAIN = 0.4, 0.95, 1.0


def confidence(label: str, source: str) -> float:
    """Return the probability, from 0 to 1, that a span with this label and source is correct.

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
        """Keep the spans that count."""
        return tuple(span for span in spans if self.counts(span))


ALL_LABELS = LabelFilter()


def parse_labels(option: str, text: str, known: frozenset[str] | None) -> tuple[str, ...]:
    """Parse labels separated by commas; each appears once, sorted.

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


_ONTONOTES = frozenset(
    {"CARDINAL", "DATE", "EVENT", "FAC", "GPE", "LANGUAGE", "LAW", "LOC", "MONEY", "NORP", "ORDINAL", "ORG"}
    | {"PERCENT", "PERSON", "PRODUCT", "QUANTITY", "TIME", "WORK_OF_ART"}
)


# PER and MISC are what many pipelines of other languages call people, and names of no other kind.
_OTHERS = frozenset({"PER", "MISC", "PROPN", "PRON", "VERB", "SUBJ", "OBJ", "DENY", "CROSSCHECK"})

LABELS = _ONTONOTES | IDENTIFIER_LABELS | _OTHERS | frozenset(LABEL_OF.values())
"""Every label of the usual pipelines, of `ner`, the recognisers and the cross-check."""

PLACEHOLDERS = pattern_of(LABELS)
"""Matches a placeholder of any style with one of these labels."""


@dataclass(frozen=True, slots=True)
class Detection(Finding):
    """What is sensitive in a record: a finding after corrections. `spans.at_tier` filters, `spans.merge` joins.

    Attributes:
        disputed: Places that a cross-check leaves for people to decide, sorted.
    """

    disputed: tuple[Range, ...] = ()

    def sensitive_tokens(self, tier: Tier) -> int:
        """Count the tokens that share a character with a span flagged at `tier`."""
        mask = bytearray(len(self.record.text))
        for span in at_tier(self.spans, tier):
            mask[span.start : span.end] = b"\1" * (span.end - span.start)
        return sum(1 in mask[start:end] for start, end in self.tokens)


def detect_records(
    records: Iterable[Record],
    *,
    pipeline: Any,
    engine: OpenReader = in_process,
    allow: Sequence[Pattern] = (),
    deny: Sequence[Pattern] = (),
    speaker_labels: Sequence[str] = (),
    label_filter: LabelFilter = ALL_LABELS,
    lookup: LookupFinding = lambda _: None,
    store: StoreFinding = lambda _: None,
    notify: Notify = ignore,
    total: int | None = None,
) -> Iterator[Detection]:
    """Find the sensitive spans of every record, in order, a few batches in memory at a time.

    A span's tier is the first that flags it, so the tiers nest. Low-entity: people, organisations, dates,
    places, names that the pipeline gave no label, and structured identifiers. High-entity: every named
    entity. Low-contextual: also proper nouns, pronouns, subjects and objects (the word itself, not what
    depends on it). High-contextual: also verbs.
    Source: "Adaptive Token-Weighted Differential Privacy for LLMs".

    Args:
        records: The records.
        pipeline: From `load_pipeline`.
        engine: Where to read.
        allow: Patterns whose matches are not sensitive.
        deny: Patterns whose matches are sensitive at every tier; they win over `allow`.
        speaker_labels: Words that are labels of speakers, whatever else they mean; see `structure`.
        label_filter: Which spans count.
        lookup: Gives what an earlier pass found; corrections are applied to it afresh.
        store: Is given what this pass finds, before corrections.
        notify: Called with how many records are done.
        total: How many records there are, where that is known.
    """
    scanned = scan(records, pipeline=pipeline, engine=engine, lookup=lookup, store=store)
    with closing(scanned) as findings:
        for done, finding in enumerate(findings, start=1):
            yield correct(finding, allow, deny, speaker_labels, label_filter)
            notify(RecordsRead(task="detect", done=done, total=total))


def correct(
    finding: Finding,
    allow: Sequence[Pattern],
    deny: Sequence[Pattern],
    speaker_labels: Sequence[str] = (),
    label_filter: LabelFilter = ALL_LABELS,
) -> Detection:
    """Correct a finding by rules, then by lists. `deny` wins over `allow`; placeholders are never flagged."""
    text = finding.record.text
    corrected = [*allowed(text, refined(text, finding.spans, speaker_labels), allow), *denied(text, deny)]
    # What an earlier redaction put there hides nothing any more.
    spans = sorted(set(label_filter.apply(allowed(text, corrected, (PLACEHOLDERS,)))), key=by_place)
    sentences = sentences_within_borders(finding.record, finding.sentences)
    return Detection(finding.record, spans_within_borders(finding.record, spans), finding.tokens, sentences)
