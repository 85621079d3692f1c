"""Stretches of the greatest gain beside all stretches, and what counts as frequent."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.memorisation.scores import NGRAM, FrequentNgrams, best_stretch, stretches_above, token_gains

GAINS = st.lists(st.integers(-8, 8).map(lambda value: value / 2), max_size=14).map(np.array)
RECORDS = st.lists(st.lists(st.integers(0, 3), max_size=7).map(np.array), min_size=1, max_size=6)


@given(gains=GAINS)
def test_the_best_stretch_has_the_greatest_sum_and_is_the_shortest_that_has(gains: np.ndarray) -> None:
    sums = {(i, j): gains[i:j].sum() for i, j in combinations(range(len(gains) + 1), 2)}
    greatest = max(sums.values(), default=0.0)
    stretch = best_stretch(gains)
    if greatest <= 0:
        assert stretch is None
        return
    assert stretch is not None
    assert stretch.gain == pytest.approx(greatest)
    assert gains[stretch.start : stretch.end].sum() == pytest.approx(greatest)
    inner = [(i, j) for (i, j), total in sums.items() if total == greatest and stretch.start <= i and j <= stretch.end]
    assert inner == [(stretch.start, stretch.end)]


@given(gains=GAINS, floor=st.sampled_from([0.5, 1.0, 3.0]))
def test_stretches_are_apart_in_order_and_nothing_above_the_floor_is_left(gains: np.ndarray, floor: float) -> None:
    stretches = stretches_above(gains, floor)
    ends = [0, *(end for stretch in stretches for end in (stretch.start, stretch.end)), len(gains)]
    assert ends == sorted(ends)
    assert all(stretch.gain == pytest.approx(gains[stretch.start : stretch.end].sum()) for stretch in stretches)
    assert all(stretch.gain >= floor for stretch in stretches)
    rest = [gains[first:last] for first, last in zip(ends[::2], ends[1::2], strict=True)]
    assert all(own is None or own.gain < floor for own in map(best_stretch, rest))


@given(held_out=RECORDS, text=st.lists(st.integers(0, 3), max_size=9).map(np.array))
def test_a_token_is_frequent_after_the_one_before_it_in_another_held_out_record(
    held_out: list[np.ndarray], text: np.ndarray
) -> None:
    assert NGRAM == 2
    known = FrequentNgrams((ids, group) for group, ids in enumerate(held_out))

    def pairs(ids: np.ndarray) -> list[tuple[int, int]]:
        return list(zip(ids.tolist(), ids[1:].tolist(), strict=False))

    everywhere = {pair for ids in held_out for pair in pairs(ids)}
    assert known.ends(text)[1:].tolist() == [pair in everywhere for pair in pairs(text)]
    for group, ids in enumerate(held_out):
        others = {pair for other, their in enumerate(held_out) if other != group for pair in pairs(their)}
        assert known.ends(ids, group=group)[1:].tolist() == [pair in others for pair in pairs(ids)]


@given(held_out=RECORDS)
def test_the_same_text_is_as_frequent_or_more_in_training_as_held_out(held_out: list[np.ndarray]) -> None:
    """So a training record scores no higher by chance than a held-out one."""
    known = FrequentNgrams((ids, group) for group, ids in enumerate(held_out))
    for group, ids in enumerate(held_out):
        ratios = np.linspace(-1, 2, len(ids))
        training, own = (
            token_gains(ratios, 0.1, frequent) for frequent in (known.ends(ids), known.ends(ids, group=group))
        )
        assert (training <= own).all()
