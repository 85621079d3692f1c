"""The choice of an audit's ε games, a check that the detector treats candidates alike, and the scores of pairs."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from atdp_cli.audit.attacks.membership import canary_records
from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.epsilon import GamePlan, mirror, plan_games
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.hypothesis_tests import split_alpha
from atdp_cli.audit.rank import Pool
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit.results import RANKS
from atdp_cli.audit.stated_epsilon import (
    NO_LEDGER,
    DetectorInvariance,
    group_epsilons,
    stated_epsilon,
)
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Range, Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.detection.text_identity import text_identity
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.windows import encode_record
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.relation import Shape
from atdp_cli.privacy.scope import selective_neighbours
from atdp_cli.replacement.decoys import places
from atdp_cli.replacement.draw import decoy_law
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.equality import equality_pattern

CHECKED = 1000
"""Candidates that the detector reads beside the canaries and their mirror images, all of them where there are fewer."""

_SEED = 9  # of the candidates that are read: public, so that a claim never depends on the day

OTHER_DETECTOR = "its records were flagged by another detector than the one installed here"

UNLIKE = "the detector does not flag all candidates alike: their redaction or the law of their decoys differs"

UNEQUAL = "not all candidates have the same equalities"


def detector_invariance(ledger: Ledger, template: Template, targets: Sequence[Target]) -> DetectorInvariance:
    """Whether the candidates are alike to the detector by which a ledger's selective guarantee holds."""
    neighbours = selective_neighbours(ledger)
    if isinstance(neighbours, str) or neighbours.flags is None:
        return DetectorInvariance(unlike=str(neighbours))
    if neighbours.flags.detector != text_identity(None):
        return DetectorInvariance(unlike=OTHER_DETECTOR)
    records = [Record(str(number), text) for number, text in enumerate(candidate_records(template, targets))]
    tier = Tier(neighbours.flags.tier)
    detections = detect_records(records, pipeline=load_pipeline())
    flagged = ((detection.record.text, at_tier(detection.spans, tier)) for detection in detections)
    return compare_flagged(flagged, neighbours.shapes)


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


def compare_flagged(flagged: Iterable[tuple[str, Sequence[Span]]], shapes: frozenset[Shape]) -> DetectorInvariance:
    """Whether texts with their spans differ only in what makes them neighbours of one another.

    Args:
        flagged: At least one.
        shapes: What neighbours have in common.
    """
    decoyed = shapes & {"shape", "pattern", "votes"}
    first: Hashable = None
    patterns: set[Hashable] = set()
    values_by_place: dict[int, set[str]] = {}
    for text, spans in flagged:
        surfaces = [(span.label, text[span.start : span.end]) for span in merge(spans)]
        seen = (
            tuple(text[start:end] for start, end in _between(text, spans)),
            redact_text(text, spans).text if "bytes" in shapes else "",
            tuple(decoy_law(*each) for each in surfaces) if decoyed else (),
        )
        first = first or seen
        if seen != first:
            return DetectorInvariance(unlike=UNLIKE)
        patterns.add(equality_pattern([(text, spans)]) if "pattern" in shapes else ())
        if len(patterns) > 1:
            return DetectorInvariance(unlike=UNEQUAL)
        for at, (slot, value) in enumerate(place for each in surfaces for place in places(*each) if decoyed):
            if slot.table:
                values_by_place.setdefault(at, set()).add(value)
    return DetectorInvariance(unlike=None, voted=any(len(values) > 1 for values in values_by_place.values()))


def _between(text: str, spans: Sequence[Span]) -> Iterator[Range]:
    merged = merge(spans)
    return zip((0, *(span.end for span in merged)), (*(span.start for span in merged), len(text)), strict=True)


def games_for(ledger: Ledger | None, canaries: CanaryTargets, pool: Pool, request: AuditRequest) -> GamePlan:
    """The games to play on a model, chosen by what was planted and what its ledger states, before the model is read.

    Args:
        ledger: The model's; None where nothing is claimed.

    Raises:
        UsageError: There are fewer canaries, or candidates, than the games were set for.
    """
    scores = 1 if request.reference is None else 2
    if canaries.manifest is None or not canaries.calibrated:
        return GamePlan(games=(), levels=split_alpha(request.limits.alpha, scores=scores, bounds=0, canaries=0))
    template, targets = canaries.template, canaries.targets
    repeats = max((target.repeats for target in targets), default=1)

    def alike() -> DetectorInvariance:
        return (
            DetectorInvariance(unlike=NO_LEDGER) if ledger is None else detector_invariance(ledger, template, targets)
        )

    plan = plan_games(
        targets,
        pool=template.pool,
        coins=canaries.manifest.coins,
        ranked=not pool.sampled,
        games=request.games,
        limits=request.limits,
        scores=scores,
        attacks=len(request.attack_gates),
        by_ranks=RANKS in request.gates,
        claim=stated_epsilon(ledger, repeats=repeats, invariance=alike),
    )
    return replace(plan, groups=group_epsilons(ledger, (target.repeats for target in targets if target.planted)))


def pair_scores(checkpoint: Checkpoint, canaries: CanaryTargets, *, name: str) -> tuple[Scores, Scores] | None:
    """log p of each canary's record and of its mirror image's, shape [canaries] each, both by the same forward pass.

    None where a record has no token to predict.
    """
    template, own = canaries.scored, canaries.targets
    reader = canaries.reader(checkpoint.tokenizer)
    if any(len(encode_record(reader, template.record(template.secret(target.index)))) < 2 for target in own):
        return None
    mirrored = [replace(target, index=mirror(target.index, template.pool)) for target in own]
    scored = canary_records(checkpoint, canaries, (*own, *mirrored), name=name).log_p
    return scored[: len(own)], scored[len(own) :]


def relative_pairs(
    pairs: tuple[Scores, Scores] | None, reference: tuple[Scores, Scores] | None
) -> tuple[Scores, Scores] | None:
    """Each pair's log p less that by the reference, where there is one."""
    if pairs is None or reference is None:
        return pairs
    return pairs[0] - reference[0], pairs[1] - reference[1]
