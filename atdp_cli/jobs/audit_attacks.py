"""The attacks on one model, and the tests of those that are gates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from atdp_cli.audit.attacks.attack_tests import (
    extraction_test,
    membership_test,
    most_at_once,
    relearning_test,
    with_attack_tests,
)
from atdp_cli.audit.attacks.extraction import extract
from atdp_cli.audit.attacks.membership import RecordScores, canary_records, infer_membership
from atdp_cli.audit.attacks.relearning import relearn
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.ranking import Pool, pool_position
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit_result import AttackTest, Audit, Gate
from atdp_cli.events import Notify
from atdp_cli.model.checkpoint import Checkpoint


@dataclass(frozen=True, kw_only=True, eq=False)
class Attacked:
    """What is attacked, and what is known of it.

    Attributes:
        scores: log p of every candidate.
        reference, reference_records: The same by the public base model, and what it says of the canaries' records.
        gates: The attacks whose tests can fail the model, each at `level`.
        judge: Judges the copy that relearning makes, by its ranks.
    """

    name: str
    checkpoint: Checkpoint
    canaries: CanaryTargets
    pool: Pool
    scores: Scores
    reference: Scores | None
    reference_records: RecordScores | None
    gates: frozenset[Gate]
    level: float
    judge: Callable[..., Audit]


def with_attacks(audit: Audit, attacked: Attacked, request: AuditRequest, notify: Notify) -> Audit:
    """The audit with what the chosen attacks give, and a verdict that counts those that are gates."""
    checkpoint, targets, chosen = attacked.checkpoint, attacked.canaries.targets, request.tried
    records: RecordScores | None = None
    if "extraction" in chosen:
        places = [pool_position(attacked.pool, targets, number) for number in range(len(targets))]
        extraction = extract(
            checkpoint.model,
            attacked.pool.candidates,
            places,
            attacked.scores[places],
            samples=request.continuations,
            name=attacked.name,
        )
        audit = audit.model_copy(update={"extraction": extraction})
    if "membership" in chosen:
        records = canary_records(checkpoint, attacked.canaries, targets, name=attacked.name)
        membership = infer_membership(records, _planted(attacked), reference=attacked.reference_records)
        audit = audit.model_copy(update={"membership": membership})
    if "relearning" in chosen and request.other_text is not None:
        copy = relearn(
            checkpoint,
            request.other_text,
            attacked.pool,
            targets,
            attacked.reference,
            steps=request.relearning_steps,
            judge=attacked.judge,
            name=attacked.name,
            notify=notify,
        )
        audit = audit.model_copy(update={"relearning": copy})
    gates = (*audit.gates, *sorted(attacked.gates))
    audit = audit.model_copy(update={"gates": gates, "attack_tests": tuple(_tests(audit, attacked, records))})
    return with_attack_tests(audit, required=request.fail_on is not None)


def _tests(audit: Audit, attacked: Attacked, records: RecordScores | None) -> Iterator[AttackTest]:
    """Of the gates; none where no canary is planted."""
    planted, pool, level = [canary for canary in audit.canaries if canary.planted], attacked.pool, attacked.level
    if not planted:
        return
    if "extraction" in attacked.gates:
        yield extraction_test(
            audit.planted_extraction(),
            at_once=most_at_once(pool.candidates),
            pool=pool.candidates.lengths.size,
            sampled=pool.sampled,
            level=level,
        )
    if "membership" in attacked.gates and records is not None:
        base = attacked.reference_records
        scores = records.log_p if base is None else records.log_p - base.log_p
        yield membership_test(scores, _planted(attacked), level=level)
    if "relearning" in attacked.gates and audit.relearning is not None:
        yield relearning_test(audit.relearning, [canary.stratum_size for canary in planted], level=level)


def _planted(attacked: Attacked) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([target.planted for target in attacked.canaries.targets])
