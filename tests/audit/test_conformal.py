"""Conformal p-values and the findings at a false discovery rate: laws, and definitions spelled out."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atdp_cli.memorisation.map import adjusted_p_values, conformal_p_values, fewest_findings

FEW = st.lists(st.integers(0, 6), min_size=1, max_size=12)
"""Scores with ties."""


@pytest.mark.parametrize("values", [(0, 1, 2, 3, 4), (0, 0, 1, 1, 1), (2, 2, 2, 2, 2)])
def test_a_score_that_is_exchangeable_with_the_others_is_seldom_small(values: tuple[int, ...]) -> None:
    """Exactly: over all orders of n + 1 values the first one's p is at most k / (n + 1) in at most that share."""
    p_values = [conformal_p_values([first], rest)[0] for first, *rest in permutations(map(float, values))]
    for k in range(1, len(values) + 1):
        assert np.mean(np.array(p_values) <= k / len(values) + 1e-12) <= k / len(values) + 1e-12


def test_without_ties_every_p_value_is_equally_likely() -> None:
    p_values = [conformal_p_values([first], rest)[0] for first, *rest in permutations([0.0, 1.0, 2.0, 3.0])]
    assert {round(p * 4): p_values.count(p) for p in p_values} == {1: 6, 2: 6, 3: 6, 4: 6}


@given(scores=FEW, held_out=FEW)
def test_p_values_count_held_out_scores_that_are_as_high(scores: list[int], held_out: list[int]) -> None:
    expected = [(1 + sum(other >= score for other in held_out)) / (1 + len(held_out)) for score in scores]
    assert conformal_p_values(scores, held_out).tolist() == pytest.approx(expected)


@given(scores=FEW, held_out=FEW, hundredths=st.integers(1, 90))
def test_the_findings_are_those_of_benjamini_and_hochberg(
    scores: list[int], held_out: list[int], hundredths: int
) -> None:
    """Step up: the largest k with the k-th smallest p at most k · rate / m, in rational numbers."""
    rate = Fraction(hundredths, 100)
    p_values = [Fraction(1 + sum(other >= score for other in held_out), 1 + len(held_out)) for score in scores]
    ordered = sorted(p_values)
    k = max((k for k, p in enumerate(ordered, start=1) if p <= k * rate / len(ordered)), default=0)
    expected = [k > 0 and p <= ordered[k - 1] for p in p_values]
    adjusted = adjusted_p_values(conformal_p_values(scores, held_out))
    assert (adjusted <= hundredths / 100).tolist() == expected


@example(tested=279, held_out=92, rate=0.05)
@given(tested=st.integers(1, 300), held_out=st.integers(1, 300), rate=st.sampled_from([0.05, 0.1, 0.2]))
def test_so_many_findings_are_needed_and_enough(tested: int, held_out: int, rate: float) -> None:
    fewest = fewest_findings(tested, held_out, rate)

    def significant(standing_out: int) -> int:
        scores = np.where(np.arange(tested) < standing_out, 2.0, 0.0)
        return int((adjusted_p_values(conformal_p_values(scores, np.ones(held_out))) <= rate).sum())

    if fewest <= tested:
        assert significant(fewest) == fewest
    assert significant(min(fewest - 1, tested)) == 0
