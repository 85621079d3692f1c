"""What bounds on ε, and canaries that a coin left out, do to the verdict."""

from typing import Any

import numpy as np
import pytest

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import rank_of
from atdp_cli.audit.hypothesis_tests import fisher, holm, split_alpha
from atdp_cli.audit.results import EpsilonBound, Verdict
from atdp_cli.audit.verdict import Limits, judge

POOL = 20_000
SCORES = -np.arange(POOL, dtype=np.float64)
LENGTHS = np.ones(POOL, dtype=np.int32)
ORDINARY = [int(share * POOL) for share in np.linspace(0.05, 0.95, 12)]
BOUND = EpsilonBound(
    method="rank",
    epsilon=1.5,
    attainable=6.0,
    delta=1e-6,
    confidence=0.99,
    guesses=12,
    correct=3,
    top=141,
    claim=None,
    finding="no-claim",
)


def judged(indices: list[int], *, out: frozenset[int] = frozenset(), **settings: Any) -> Any:
    targets = [Target(index=index, repeats=1, planted=number not in out) for number, index in enumerate(indices)]
    ranks = [rank_of(SCORES, LENGTHS, index) for index in indices]
    limits = settings.get("limits", Limits())
    levels = split_alpha(limits.alpha, scores=1, bounds=len(settings.get("epsilon", ())), canaries=len(indices))
    return judge("model", ranks, None, targets, pool=POOL, levels=levels, **settings)


def test_a_bound_by_itself_neither_fails_nor_passes() -> None:
    actual = judged(ORDINARY, epsilon=(BOUND,))
    assert actual.verdict is Verdict.PASS
    assert actual.epsilon == (BOUND,)


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [("refuted", Verdict.FAIL), ("not-refuted", Verdict.PASS), ("inconclusive", Verdict.PASS)],
)
def test_a_refuted_claim_fails(finding: Any, verdict: Verdict) -> None:
    actual = judged(ORDINARY, epsilon=(BOUND.model_copy(update={"claim": 1.0, "finding": finding}),))
    assert actual.verdict is verdict
    assert (verdict is Verdict.FAIL) == any("1.00" in reason and "refuted" in reason for reason in actual.reasons)


@pytest.mark.parametrize(
    ("limit", "verdict"), [(1.4, Verdict.FAIL), (1.5, Verdict.PASS), (5.9, Verdict.PASS), (6.0, Verdict.INCONCLUSIVE)]
)
def test_a_limit_is_passed_kept_or_out_of_reach(limit: float, verdict: Verdict) -> None:
    assert judged(ORDINARY, epsilon=(BOUND,), limits=Limits(max_epsilon_lower_bound=limit)).verdict is verdict


def test_a_limit_without_any_bound_cannot_be_tested() -> None:
    actual = judged(ORDINARY, limits=Limits(max_epsilon_lower_bound=3))
    assert actual.verdict is Verdict.INCONCLUSIVE


def test_other_tokens_than_those_trained_make_even_a_refutation_inconclusive() -> None:
    refuted = BOUND.model_copy(update={"claim": 1.0, "finding": "refuted"})
    assert judged(ORDINARY, epsilon=(refuted,), mismatch="Other tokens.").verdict is Verdict.INCONCLUSIVE


def test_canaries_left_out_count_for_nothing_among_the_planted() -> None:
    """Two that rank at the ends of the middle half, as chance would put them."""
    indices = [POOL // 4, POOL - POOL // 4, *ORDINARY]
    actual = judged(indices, out=frozenset({0, 1}), limits=Limits(max_exposure=10))
    assert actual.verdict is Verdict.PASS
    inside = [rank_of(SCORES, LENGTHS, index).p_value for index in ORDINARY]
    assert actual.combined.fisher_p == fisher(inside)
    assert tuple(canary.holm_p for canary in actual.canaries) == (None, None, *holm(inside))
    assert actual.combined.max_exposure == max(canary.exposure for canary in actual.canaries[2:])


@pytest.mark.parametrize("index", [0, POOL - 1])
def test_a_canary_that_was_left_out_and_that_the_model_knows_is_a_finding(index: int) -> None:
    """Planted it would fail the model; left out it says that the model read another corpus than the manifest's."""
    assert judged([index, *ORDINARY]).verdict is Verdict.FAIL
    actual = judged([index, *ORDINARY], out=frozenset({0}))
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert "1 of 1 canaries that were left out" in actual.reasons[0]
    failed = judged([0, index, *ORDINARY[1:]], out=frozenset({1}))
    assert failed.verdict is Verdict.FAIL
    assert "1 of 1 canaries that were left out" in failed.notices[0]


def test_if_every_coin_says_out_nothing_was_tested() -> None:
    actual = judged(ORDINARY, out=frozenset(range(12)))
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert actual.combined.mean_exposure is None
