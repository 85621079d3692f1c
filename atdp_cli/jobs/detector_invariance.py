"""Whether canaries can test the selective claim: what the run's own detector makes of the candidates."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.claims import Alike
from atdp_cli.audit.epsilon import mirror
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.scope import selective_neighbours
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.detection.detect import detect_records
from atdp_cli.text.detection.scan import load_pipeline
from atdp_cli.text.detection.spans import Span, Tier, at_tier, merge
from atdp_cli.text.identity import text_identity
from atdp_cli.text.redaction.decoys import places
from atdp_cli.text.redaction.edits import redact_text
from atdp_cli.text.redaction.equality import equality_pattern

CHECKED = 1000
"""Candidates that the detector reads beside the canaries and their mirror images, all of them where there are fewer."""

_SEED = 9  # of the candidates that are read: public, so that a claim never depends on the day

OTHER_DETECTOR = "its records were flagged by another detector than the one installed here"
UNLIKE = "the detector does not flag all candidates alike: their redaction or their shape differs"
UNEQUAL = "not all candidates have the same words and numbers equal"


def alike_for(ledger: Ledger, template: Template, targets: Sequence[Target]) -> Alike:
    """Whether the candidates are alike to the detector by which a ledger's selective guarantee holds."""
    neighbours = selective_neighbours(ledger)
    if isinstance(neighbours, str) or neighbours.flags is None:
        return Alike(unlike=str(neighbours))
    if neighbours.flags.detector != text_identity(None):
        return Alike(unlike=OTHER_DETECTOR)
    records = [Record(str(number), text) for number, text in enumerate(candidate_records(template, targets))]
    tier = Tier(neighbours.flags.tier)
    detections = detect_records(records, pipeline=load_pipeline())
    flagged = ((detection.record.text, at_tier(detection.spans, tier)) for detection in detections)
    return compare_flagged(flagged, pattern="pattern" in neighbours.shapes)


def candidate_records(template: Template, targets: Sequence[Target]) -> Iterator[str]:
    """The records of the canaries, of their mirror images and of `CHECKED` uniform candidates, or of all."""
    if template.pool <= CHECKED:
        yield from template.candidates()
        return
    generator = np.random.default_rng(_SEED)
    for target in targets:
        yield template.record(template.secret(target.index))
        yield template.record(template.secret(mirror(target.index, template.pool)))
    for share in generator.random(CHECKED):
        yield template.record(template.secret(min(int(share * template.pool), template.pool - 1)))


def compare_flagged(flagged: Iterable[tuple[str, Sequence[Span]]], *, pattern: bool = False) -> Alike:
    """Whether texts with their spans redact to the same bytes and have the same shapes, and differ nowhere else.

    Args:
        flagged: At least one.
        pattern: Whether the same of their words and numbers must be equal too.
    """
    first: tuple[str, tuple[object, ...]] | None = None
    patterns: set[tuple[int, ...]] = set()
    values_by_place: list[set[str]] = []
    voted: list[bool] = []
    for text, spans in flagged:
        values = [place for span in merge(spans) for place in places(span.label, text[span.start : span.end])]
        seen = redact_text(text, spans).text, tuple(slot for slot, _ in values)
        if first is None:
            first = seen
            values_by_place, voted = [set() for _ in values], [bool(slot.table) for slot, _ in values]
        if seen != first:
            return Alike(unlike=UNLIKE)
        patterns.add(equality_pattern([(text, spans)]) if pattern else ())
        if len(patterns) > 1:
            return Alike(unlike=UNEQUAL)
        for seen_values, (_, value) in zip(values_by_place, values, strict=True):
            seen_values.add(value)
    return Alike(
        unlike=None,
        voted=any(votes and len(seen_values) > 1 for votes, seen_values in zip(voted, values_by_place, strict=True)),
    )
