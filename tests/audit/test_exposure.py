"""Ranks, exposures and p-values of one secret."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from atdp_cli.audit.exposure import rank_of

Pool = tuple[NDArray[np.float64], NDArray[np.int32]]


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Few distinct scores and lengths, so that ties and small strata are common."""
    size = draw(st.integers(1, 60))
    scores = draw(st.lists(st.sampled_from([-3.5, -1.0, -1.0 + 1e-9, 0.0, 2.0]), min_size=size, max_size=size))
    lengths = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    return np.array(scores), np.array(lengths, dtype=np.int32)


def ranks_by_sorting(scores: list[float], own: float) -> tuple[int, int]:
    """The first and last place that a candidate of score `own` takes, whichever way ties are ordered."""
    places = [place for place, score in enumerate(sorted(scores, reverse=True), 1) if score == own]
    return places[0], places[-1]


@settings(max_examples=300, deadline=None)
@given(pools())
def test_a_rank_agrees_with_sorting(pool: Pool) -> None:
    scores, lengths = pool
    for index in range(scores.size):
        actual = rank_of(scores, lengths, index)
        stratum = [float(s) for s, length in zip(scores, lengths, strict=True) if length == lengths[index]]
        means = (scores / np.maximum(lengths, 1)).tolist()
        assert (actual.rank_min, actual.rank_max) == ranks_by_sorting(scores.tolist(), scores[index])
        assert (actual.stratum_rank_min, actual.stratum_rank_max) == ranks_by_sorting(stratum, scores[index])
        assert (actual.pool, actual.stratum_size) == (scores.size, len(stratum))
        assert actual.exposure == log2(len(stratum) / actual.stratum_rank_max)
        assert actual.exposure_plain == log2(scores.size / actual.rank_max)
        assert actual.exposure_per_token == log2(scores.size / ranks_by_sorting(means, means[index])[1])
        assert actual.tied == (len(set(stratum)) == 1)
        last = ranks_by_sorting([-score for score in stratum], -scores[index])[1]
        assert actual.p_value == min(1.0, 2 * min(actual.stratum_rank_max, last) / len(stratum))


@pytest.mark.ci
@settings(max_examples=300, deadline=None)
@given(pools())
def test_no_threshold_is_met_too_often_under_a_uniform_secret(pool: Pool) -> None:
    """P(p <= t) <= t for every t that p can take, counted over all secrets: exact, ties and strata included."""
    scores, lengths = pool
    p_values = np.array([rank_of(scores, lengths, index).p_value for index in range(scores.size)])
    for threshold in np.unique(p_values):
        assert np.count_nonzero(p_values <= threshold) <= threshold * scores.size + 1e-9


@settings(max_examples=100, deadline=None)
@given(pools(), st.integers(0, 59))
def test_only_order_within_the_stratum_matters_to_p(pool: Pool, pick: int) -> None:
    scores, lengths = pool
    index = pick % scores.size
    before = rank_of(scores, lengths, index)
    shifted = np.where(lengths == lengths[index], 3 * scores + 7, scores)
    after = rank_of(shifted, lengths, index)
    assert (before.p_value, before.exposure) == (after.p_value, after.exposure)


def test_a_memorised_a_forgotten_and_an_unlikely_secret() -> None:
    scores = np.arange(1024, dtype=np.float64)
    lengths = np.full(1024, 6, dtype=np.int32)
    best, middle, worst = (rank_of(scores, lengths, index) for index in (1023, 511, 0))
    assert (best.rank_min, best.rank_max, best.exposure, best.p_value) == (1, 1, 10.0, 2 / 1024)
    assert (middle.rank_min, middle.p_value) == (513, 1.0)
    assert (worst.rank_max, worst.exposure, worst.p_value) == (1024, 0.0, 2 / 1024)


def test_exposure_by_chance_is_one_bit_and_a_half() -> None:
    scores = np.random.default_rng(0).normal(size=4096)
    lengths = np.full(4096, 3, dtype=np.int32)
    bits = [rank_of(scores, lengths, index).exposure for index in range(4096)]
    assert np.mean(bits) == pytest.approx(1 / np.log(2), abs=0.01)
