"""The secret detector: one pass over the corpus and people's corrections give the spans of all four tiers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.files.regexes import Pattern
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.confidence import ALL_LABELS, LabelFilter
from atdp_cli.text.detection.entities import LABEL_OF
from atdp_cli.text.detection.executor import OpenReader, in_process
from atdp_cli.text.detection.identifiers import IDENTIFIER_LABELS, RECOGNISERS, Recogniser
from atdp_cli.text.detection.refine import refined
from atdp_cli.text.detection.scan import Finding, LookupFinding, StoreFinding, scan
from atdp_cli.text.detection.spans import Range, Tier, at_tier, by_place, sentences_within_turns, spans_within_turns
from atdp_cli.text.detection.term_lists import allowed, denied
from atdp_cli.text.redaction.placeholders import pattern_of

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
        """How many tokens share a character with a span that `tier` flags."""
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
    recognisers: Sequence[Recogniser] = RECOGNISERS,
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
        recognisers: The structured identifiers to look for.
        lookup: Gives what an earlier pass found; corrections are applied to it afresh.
        store: Is given what this pass finds, before corrections.
        notify: Called with how many records are done.
        total: How many records there are, where that is known.
    """
    scanned = scan(records, pipeline=pipeline, engine=engine, recognisers=recognisers, lookup=lookup, store=store)
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
    """A finding put right by rules, then by people; `deny` wins over `allow`, and neither reaches into placeholders."""
    text = finding.record.text
    corrected = [*allowed(text, refined(text, finding.spans, speaker_labels), allow), *denied(text, deny)]
    # What an earlier redaction put there hides nothing any more.
    spans = sorted(set(label_filter.apply(allowed(text, corrected, (PLACEHOLDERS,)))), key=by_place)
    sentences = sentences_within_turns(finding.record, finding.sentences)
    return Detection(finding.record, spans_within_turns(finding.record, spans), finding.tokens, sentences)
