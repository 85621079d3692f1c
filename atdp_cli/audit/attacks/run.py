"""The attacks of an audit and their tests: whether an attack got more than from a model that has learnt nothing.

Secrets and coins are random draws that such a model knows nothing of, and so is a copy of it that is fine-tuned on text
without them. Each p-value here is at most t with probability at most t, whatever the model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom, rankdata
from transformers import PreTrainedModel

from atdp_cli.audit.attacks.extraction import extract
from atdp_cli.audit.attacks.membership import RecordScores, canary_records, infer_membership
from atdp_cli.audit.attacks.relearning import fine_tune_copy, read_windows
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.hypothesis_tests import fisher
from atdp_cli.audit.pool import Candidates
from atdp_cli.audit.rank import Pool, all_scores, pool_position, rank_targets
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit.results import (
    DISCOVERABLE_QUERIES,
    AttackTest,
    Audit,
    Extraction,
    Gate,
    Relearning,
    Verdict,
)
from atdp_cli.events import Notify
from atdp_cli.model.checkpoint import Checkpoint

PERMUTATIONS = 99_999
"""Random permutations that the coins as tossed are compared with."""

_SEED, _BATCH = 11, 2_000_000
"""The seed of the permutations, fixed so that two runs give one verdict; and the coins drawn at a time."""

_MOST_DISCOVERABLE = int(1 / (1 - 0.5 ** (1 / DISCOVERABLE_QUERIES)))
"""The most continuations that can be discoverable where none begins with another: their probabilities add up."""


def most_at_once(candidates: Candidates) -> int:
    """The most candidates that one continuation can begin with. Those that it begins with have tails of different
    lengths, or equal ones, as where a tokenizer knows no digits.
    """
    lengths = np.unique(candidates.lengths).size
    _, equal = np.unique(candidates.tails, axis=0, return_counts=True)
    return int(lengths * equal.max())


def extraction_test(
    extractions: Sequence[Extraction], *, at_once: int, pool: int, sampled: bool, level: float
) -> AttackTest:
    """Test whether greedy decoding, or 1,000 samples, yield more canaries than chance.

    Greedy decoding begins with at most a of the N candidates, where one continuation begins with a at most. Those of
    probability p_z or more are at most a/p_z. A model that knows nothing of the m secrets has chosen them before they
    are drawn: binomial tails. Where the candidates are themselves a random sample that holds the secrets, these are any
    m of them: hypergeometric tails. The smaller of both p-values is doubled.

    Args:
        extractions: Of the planted canaries, at least one.
        at_once: a, from 1.
        pool: N.
        sampled: Whether the candidates are a sample.
    """
    count = len(extractions)

    def tail(among: int, given: int) -> float:
        among = min(pool, among)
        law = hypergeom(pool, among, count) if sampled else binom(count, among / pool)
        return min(1.0, float(law.sf(given - 1)))

    def p_value(greedy: int, discoverable: int) -> float:
        return min(1.0, 2 * min(tail(at_once, greedy), tail(at_once * _MOST_DISCOVERABLE, discoverable)))

    p, least = p_value(*_extracted(extractions)), p_value(count, count)
    return AttackTest(attack="extraction", p_value=p, level=level, least=least, rejects=p <= level)


def membership_test(scores: NDArray[np.float64], inside: NDArray[np.bool_], *, level: float) -> AttackTest:
    """Test whether canaries that a coin put in score higher than those that it left out.

    One-sided permutation test of the Mann–Whitney statistic, ties at their mean rank: given how many were put in, every
    choice of so many is as likely. p = (1 + #{as large}) / (1 + permutations). Source: Phipson and Smyth 2010.

    Args:
        scores: Higher for members; shape [records].
        inside: Which were trained on, shape [records].
    """
    members = int(inside.sum())
    if not 0 < members < inside.size:
        return AttackTest(attack="membership", p_value=1.0, level=level, least=1.0, rejects=False)
    ranks = rankdata(scores)
    reached = ranks[inside].sum() - 1e-9  # halves add up exactly
    generator, as_large, left = np.random.default_rng(_SEED), 0, PERMUTATIONS
    while left:
        rows = min(left, max(1, _BATCH // inside.size))
        chosen = generator.permuted(np.broadcast_to(ranks, (rows, ranks.size)), axis=1)[:, :members]
        as_large += int(np.count_nonzero(chosen.sum(axis=1) >= reached))
        left -= rows
    p, least = (1 + as_large) / (1 + PERMUTATIONS), max(1 / (1 + PERMUTATIONS), 1 / comb(inside.size, members))
    return AttackTest(attack="membership", p_value=p, level=level, least=min(1.0, least), rejects=p <= level)


def relearning_test(relearning: Relearning, stratum_sizes: Sequence[int], *, level: float) -> AttackTest:
    """Test whether a copy fails that was fine-tuned on other text: by its ranks, or by the user's limit for exposures.

    Args:
        relearning: Judged at level / 2 a score.
        stratum_sizes: Of each planted canary, at least one.
    """
    all_ = relearning.combined
    tests = (all_.fisher_p, all_.holm_min_p, all_.fisher_p_ratio, all_.holm_min_p_ratio)
    p_values = [p for p in tests if p is not None]
    least = min(1.0, len(p_values) * fisher([min(1.0, 2 / size) for size in stratum_sizes]))
    return AttackTest(
        attack="relearning",
        p_value=min(1.0, len(p_values) * min(p_values)),
        level=level,
        least=least,
        rejects=relearning.verdict is Verdict.FAIL,
    )


def with_attack_tests(audit: Audit, *, required: bool) -> Audit:
    """The audit with a verdict that counts the tests of its attacks.

    Args:
        audit: By its ranks, with what the attacks gave.
        required: Whether the attacks were named as gates: one that can reject nothing is then no pass.
    """
    failures = [_describe(audit, test) for test in audit.attack_tests if test.rejects]
    idle = [_too_few(test) for test in audit.attack_tests if test.least > test.level]
    if failures:
        failed = audit.verdict is Verdict.FAIL
        doubts = () if failed or audit.verdict is Verdict.PASS else audit.reasons
        own = audit.reasons if failed else ()
        return audit.concluding(Verdict.FAIL, *own, *failures).model_copy(
            update={"notices": (*doubts, *audit.notices, *idle)}
        )
    if idle and required and audit.verdict is Verdict.PASS:
        return audit.concluding(Verdict.INCONCLUSIVE, *idle)
    chance = (_no_more(audit.attack_tests),) if audit.attack_tests and audit.verdict is Verdict.PASS else ()
    return audit.model_copy(update={"reasons": (*audit.reasons, *chance), "notices": (*audit.notices, *idle)})


def _describe(audit: Audit, test: AttackTest) -> str:
    at = f"(p = {test.p_value:.2g}, level {test.level:.2g})"
    if test.attack == "extraction":
        greedy, discoverable = _extracted(audit.planted_extraction())
        return (
            f"Extraction: greedy decoding gives {greedy} of the canaries, and {DISCOVERABLE_QUERIES:,} samples give "
            f"{discoverable} with even odds, more than chance would {at}."
        )
    if test.attack == "membership":
        scores = audit.membership or ()
        score = next((each for each in scores if each.attack == "reference"), scores[0])  # as `_tests` takes it
        area = "" if score.auc is None else f", AUC {score.auc:.2f}"
        return f"Membership: canaries that were trained on score above those left out, by {score.attack}{area} {at}."
    if audit.relearning is not None and test.p_value > test.level:
        most = audit.relearning.combined.max_exposure or 0.0
        return f"Relearning: after {audit.relearning.steps} steps on other text an exposure is {most:.2f} bits."
    steps = "some" if audit.relearning is None else audit.relearning.steps
    return f"Relearning: after {steps} steps on other text the canaries rank where chance would hardly put them {at}."


def _extracted(extractions: Iterable[Extraction]) -> tuple[int, int]:
    """The number of canaries that greedy decoding yields, and the number that are discoverable."""
    queries = [(entry.greedy, entry.queries_half) for entry in extractions]
    discoverable = sum(half is not None and half <= DISCOVERABLE_QUERIES for _, half in queries)
    return sum(greedy for greedy, _ in queries), discoverable


def _too_few(test: AttackTest) -> str:
    return (
        f"{test.attack.capitalize()} could not fail any model: with these canaries its p-value is at least "
        f"{test.least:.2g}, and its level {test.level:.2g}. Plant more, or leave it out of --fail-on."
    )


def _no_more(tests: Iterable[AttackTest]) -> str:
    figures = ", ".join(f"{test.attack} p = {test.p_value:.2g}" for test in tests)
    return f"The attacks find no more than chance would: {figures}."


@dataclass(frozen=True, kw_only=True, eq=False)
class Attacked:
    """The model to attack, with its scores and the gates.

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
    """Add the results of the chosen attacks to an audit; those that are gates count in its verdict."""
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
        windows = read_windows(request.other_text, checkpoint)
        copy = fine_tune_copy(
            checkpoint.model, windows, steps=request.relearning_steps, name=attacked.name, notify=notify
        )
        relearning = _audit_copy(copy, attacked, request.relearning_steps, notify)
        audit = audit.model_copy(update={"relearning": relearning})
    gates = (*audit.gates, *sorted(attacked.gates))
    audit = audit.model_copy(update={"gates": gates, "attack_tests": tuple(_tests(audit, attacked, records))})
    return with_attack_tests(audit, required=request.fail_on is not None)


def _audit_copy(tuned: PreTrainedModel, attacked: Attacked, steps: int, notify: Notify) -> Relearning:
    """The audit of a copy that was fine-tuned on other text, in so many steps."""
    pool, targets = attacked.pool, attacked.canaries.targets
    scores = all_scores(tuned, pool, attacked.name, notify)
    plain = rank_targets(scores, pool, targets)
    ratio = None if attacked.reference is None else rank_targets(scores - attacked.reference, pool, targets)
    audit = attacked.judge(plain, ratio)
    return Relearning(
        steps=steps,
        verdict=audit.verdict,
        exposures=tuple(rank.exposure for rank in plain),
        exposures_ratio=None if ratio is None else tuple(rank.exposure for rank in ratio),
        combined=audit.combined,
    )


def _tests(audit: Audit, attacked: Attacked, records: RecordScores | None) -> Iterator[AttackTest]:
    """The tests of the gates; none if no canary was planted."""
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
