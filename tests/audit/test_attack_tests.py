"""The tests of attacks: seldom enough wrong about models that have learnt nothing, and right about others."""

from collections.abc import Sequence
from itertools import combinations
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from atdp_cli.audit.attacks.extraction import queries_needed
from atdp_cli.audit.attacks.run import PERMUTATIONS, extraction_test, membership_test, most_at_once, with_attack_tests
from atdp_cli.audit.pool import PADDING, Candidates
from atdp_cli.audit.results import AttackTest, Audit, Extraction, Verdict
from tests.audit.nulls import null_audits, plan_by_planted

ONE_THOUSAND = 1 - 0.5 ** (1 / 1000)


def extraction(greedy: bool, p_z: float) -> Extraction:
    """Of a canary that a continuation begins with so often."""
    queries = queries_needed(log(p_z), 0.5)
    return Extraction(
        greedy=greedy, sampled=0, samples=1, log_p=log(p_z), queries_half=queries, queries_nine_tenths=queries
    )


@given(st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=12))
def test_no_continuation_begins_with_more_candidates(tails: list[list[int]]) -> None:
    longest = max(map(len, tails))
    padded = np.array([tail + [PADDING] * (longest - len(tail)) for tail in tails]).reshape(len(tails), longest)
    candidates = Candidates(
        prefix=np.array([0]), tails=padded.astype(np.int32), lengths=np.array([len(tail) for tail in tails])
    )
    most = max(sum(other == tail[: len(other)] for other in tails) for tail in tails)
    assert most <= most_at_once(candidates)


@pytest.mark.ci
@settings(deadline=None, max_examples=6)
@given(st.integers(2, 60), st.integers(1, 6), st.integers(0, 60), st.booleans())
def test_of_random_secrets_so_many_are_extracted_with_no_more_than_that_probability(
    pool: int, count: int, discoverable: int, sampled: bool
) -> None:
    """A model that gives `discoverable` candidates, one of them by greedy decoding, whatever the secrets are."""
    discoverable, count = min(discoverable, pool), min(count, pool)
    draws = np.random.default_rng(pool)
    places = [
        draws.choice(pool, size=count, replace=False) if sampled else draws.integers(pool, size=count)
        for _ in range(300)
    ]
    p_values = np.array(
        [
            extraction_test(
                [extraction(place == 0 < discoverable, 0.5 if place < discoverable else 1e-9) for place in chosen],
                at_once=1,
                pool=pool,
                sampled=sampled,
                level=0.01,
            ).p_value
            for chosen in places
        ]
    )
    for level in (0.01, 0.05, 0.2, 0.5):
        share = float(np.mean(p_values <= level))
        assert share <= level + 4 * (level * (1 - level) / 300) ** 0.5


def test_what_greedy_decoding_gives_is_beyond_chance_among_a_million() -> None:
    tested = extraction_test(
        [extraction(True, 0.9), *[extraction(False, 1e-6)] * 9], at_once=4, pool=10**6, sampled=False, level=2e-4
    )
    assert tested.rejects
    assert tested.p_value == pytest.approx(2 * 10 * 4e-6, rel=1e-3)
    nothing = extraction_test([extraction(False, 1e-6)] * 10, at_once=4, pool=10**6, sampled=False, level=2e-4)
    assert nothing.p_value == 1.0
    assert nothing.least == tested.least < 1e-20


def test_what_is_discoverable_counts_from_an_even_chance_in_a_thousand_samples() -> None:
    def p_value(p_z: float) -> float:
        return extraction_test([extraction(False, p_z)] * 4, at_once=1, pool=10**6, sampled=False, level=0.01).p_value

    assert p_value(1.001 * ONE_THOUSAND) == pytest.approx(2 * 1443e-6**4 * 1.0, rel=0.01)
    assert p_value(0.999 * ONE_THOUSAND) == 1.0


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=9), st.data())
def test_membership_has_the_p_value_of_all_falls_of_the_coins(values: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(values) - 1))
    inside = np.zeros(len(values), dtype=np.bool_)
    inside[data.draw(st.permutations(range(len(values))))[:count]] = True
    scores = np.array(values, dtype=np.float64)
    tested = membership_test(scores, inside, level=0.01)
    statistics = [
        mannwhitneyu(scores[list(chosen)], np.delete(scores, chosen)).statistic
        for chosen in combinations(range(len(values)), count)
    ]
    observed = mannwhitneyu(scores[inside], scores[~inside]).statistic
    exact = float(np.mean(np.array(statistics) >= observed))
    assert abs(tested.p_value - exact) <= 5 * (exact * (1 - exact) / PERMUTATIONS) ** 0.5 + 1 / PERMUTATIONS
    assert tested.least == pytest.approx(1 / comb(len(values), count))


def test_membership_without_both_kinds_says_nothing() -> None:
    for inside in (np.zeros(4, dtype=np.bool_), np.ones(4, dtype=np.bool_)):
        tested = membership_test(np.arange(4.0), inside, level=0.5)
        assert (tested.p_value, tested.least, tested.rejects) == (1.0, 1.0, False)


def a_test(p_value: float, least: float = 1e-9) -> AttackTest:
    return AttackTest(attack="membership", p_value=p_value, level=0.001, least=least, rejects=p_value <= 0.001)


@pytest.fixture(scope="module")
def audits() -> Sequence[Audit]:
    """Of a model that has learnt nothing: one that passes and one that fails all the same."""
    made = null_audits(60, 0.2, coins=False, scores=1, plan=plan_by_planted(0.2, coins=False, scores=1), seed=3)
    return [next(audit for audit in made if audit.verdict is verdict) for verdict in (Verdict.PASS, Verdict.FAIL)]


def judged(audit: Audit, test: AttackTest, *, required: bool) -> Audit:
    return with_attack_tests(audit.model_copy(update={"attack_tests": (test,), "membership": ()}), required=required)


@pytest.mark.parametrize("required", [True, False])
def test_a_model_that_only_an_attack_fails_fails(audits: Sequence[Audit], required: bool) -> None:
    passed, failed = audits
    assert judged(passed, a_test(0.5), required=required).verdict is Verdict.PASS
    assert "membership p = 0.5" in judged(passed, a_test(0.5), required=required).reasons[-1]
    assert judged(failed, a_test(0.5), required=required).reasons == failed.reasons


def test_a_gate_that_can_fail_nothing_is_no_pass_where_it_was_named(audits: Sequence[Audit]) -> None:
    passed, failed = audits
    named = judged(passed, a_test(0.5, least=0.01), required=True)
    assert named.verdict is named.gate is Verdict.INCONCLUSIVE
    assert "could not fail any model" in named.reasons[0]
    unnamed = judged(passed, a_test(0.5, least=0.01), required=False)
    assert unnamed.verdict is Verdict.PASS
    assert "could not fail any model" in unnamed.notices[-1]
    assert judged(failed, a_test(0.5, least=0.01), required=True).verdict is Verdict.FAIL
