"""Canaries that are ranked among a shared sample: the law of their tests, and the verdicts beside exact ones."""

from collections import Counter
from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Rank, Scores, rank_of
from atdp_cli.audit.hypothesis_tests import DRAWS, TokenLengthGroup, fisher_in_sample, sample_size, split_alpha
from atdp_cli.audit.results import Audit, Verdict
from atdp_cli.audit.verdict import Limits, judge


def ranks_in_sample(drawn: Scores, own: Scores) -> list[Rank]:
    """Of each secret among the sample and itself, all of one token length."""
    lengths = np.ones(drawn.size + 1, dtype=np.int32)
    return [rank_of(np.append(drawn, score), lengths, drawn.size) for score in own]


def judged(ranks: list[Rank], alpha: float, length_groups: list[TokenLengthGroup] | None) -> Audit:
    targets = [Target(index=0, repeats=1)] * len(ranks)
    levels = split_alpha(alpha, scores=1, bounds=0, canaries=len(ranks))
    return judge(
        "model",
        ranks,
        None,
        targets,
        pool=10**5,
        levels=levels,
        limits=Limits(alpha=alpha),
        length_groups=length_groups,
    )


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (4, 3), (6, 3)])
def test_the_law_of_the_statistic_is_that_of_all_orders(n: int, m: int) -> None:
    """Secrets at any m of n + m places, each choice as likely."""
    statistics: Counter[float] = Counter()
    for places in combinations(range(n + m), m):
        better = [place - before for before, place in enumerate(places)]
        p_values = [min(1.0, 2 * min(b + 1, n + 1 - b) / (n + 1)) for b in better]
        statistics[round(-sum(map(log, p_values)), 9)] += 1
    total = sum(statistics.values())
    for statistic in statistics:
        exact = sum(count for other, count in statistics.items() if other >= statistic) / total
        given_p = fisher_in_sample([np.exp(-statistic / m)] * m, [TokenLengthGroup(tokens=3, size=n + 1)] * m)
        assert abs(given_p - exact) <= 5 * sqrt(exact * (1 - exact) / DRAWS) + 1 / DRAWS


@pytest.mark.ci
@given(st.lists(st.tuples(st.integers(1, 3), st.floats(1e-6, 1)), min_size=1, max_size=6))
def test_it_takes_secrets_of_several_lengths_in_any_order(secrets: list[tuple[int, float]]) -> None:
    length_groups = [TokenLengthGroup(tokens=tokens, size=10 * tokens) for tokens, _ in secrets]
    p_values = [p for _, p in secrets]
    p = fisher_in_sample(p_values, length_groups)
    assert 0 < p <= 1
    assert p == pytest.approx(fisher_in_sample(p_values[::-1], length_groups[::-1]))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_it_rejects_models_without_memory_as_often_as_it_says(level: float) -> None:
    """Of 4,000; that the secrets share their sample is no small thing here: half as many as are sampled."""
    dice, n, m, models = np.random.default_rng(2), 60, 30, 4000
    better = (dice.normal(size=(models, 1, n)) > dice.normal(size=(models, m, 1))).sum(axis=2)
    p_values = np.minimum(1.0, 2 * np.minimum(better + 1, n + 1 - better) / (n + 1))
    length_groups = [TokenLengthGroup(tokens=6, size=n + 1)] * m
    rejected = sum(fisher_in_sample(row, length_groups) <= level for row in p_values.tolist()) / models
    assert abs(rejected - level) <= 3.5 * sqrt(level * (1 - level) / models)


def test_ties_never_help_to_reject() -> None:
    dice, n, m = np.random.default_rng(3), 40, 6
    length_groups = [TokenLengthGroup(tokens=6, size=n + 1)] * m
    rejected = 0
    for _ in range(1500):
        drawn, own = dice.integers(6, size=n).astype(float), dice.integers(6, size=m).astype(float)
        rejected += fisher_in_sample([rank.p_value for rank in ranks_in_sample(drawn, own)], length_groups) <= 0.2
    assert rejected / 1500 <= 0.2


def test_audits_in_a_sample_fail_models_without_memory_with_probability_alpha_at_most() -> None:
    dice, alpha, m = np.random.default_rng(5), 0.2, 10
    n = sample_size(split_alpha(alpha, scores=1, bounds=0, canaries=m).test, m)
    length_groups = [TokenLengthGroup(tokens=1, size=n + 1)] * m
    failed = sum(
        judged(ranks_in_sample(dice.normal(size=n), dice.normal(size=m)), alpha, length_groups).verdict is Verdict.FAIL
        for _ in range(1500)
    )
    assert failed / 1500 <= alpha + 3 * sqrt(alpha * (1 - alpha) / 1500)
    assert failed > 0


def test_the_verdict_is_that_of_all_candidates_wherever_the_exact_p_is_clear() -> None:
    """Forty models that remember their canaries more and more, at the default alpha."""
    dice, alpha, m, clear = np.random.default_rng(7), 0.01, 10, 0
    n = sample_size(split_alpha(alpha, scores=1, bounds=0, canaries=m).test, m)
    for memory in np.linspace(0, 3, 40):
        pool, own = dice.normal(size=10**5), dice.normal(size=m) + memory
        exact = judged(ranks_in_sample(pool, own), alpha, None)
        sample = judged(
            ranks_in_sample(dice.choice(pool, size=n), own), alpha, [TokenLengthGroup(tokens=1, size=n + 1)] * m
        )
        fisher_p, holm_p = exact.combined.fisher_p, exact.combined.holm_min_p
        assert fisher_p is not None
        assert holm_p is not None
        p = 2 * min(fisher_p, holm_p)
        if not alpha / 3 <= p <= 3 * alpha:
            clear += 1
            assert (sample.verdict, p) == (exact.verdict, p)
    assert clear >= 30


@given(st.floats(1e-4, 0.5), st.integers(1, 200))
def test_a_sample_lets_holm_reject_one_canary_of_rank_two(level: float, canaries: int) -> None:
    assert canaries * 4 / (sample_size(level, canaries) + 1) <= level
