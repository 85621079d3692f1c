"""Shares of a corpus, estimated from a sample."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.review.summary import estimate


@given(st.integers(1, 60), st.data())
def test_the_interval_is_clopper_and_pearsons(sampled: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, sampled))
    weight = data.draw(st.floats(1, 1000))

    def tail(share: float, least: int, most: int) -> float:
        return sum(math.comb(sampled, k) * share**k * (1 - share) ** (sampled - k) for k in range(least, most + 1))

    actual = estimate([(at < hits, weight) for at in range(sampled)])
    assert actual.share == pytest.approx(hits / sampled)
    assert actual.low == 0 if hits == 0 else tail(actual.low, hits, sampled) == pytest.approx(0.025)
    assert actual.high == 1 if hits == sampled else tail(actual.high, 0, hits) == pytest.approx(0.025)


def test_weights_widen_the_interval() -> None:
    even = estimate([(at % 4 == 0, 1.0) for at in range(40)])
    uneven = estimate([(at % 4 == 0, 1.0 + 9 * (at % 8 < 2)) for at in range(40)])
    assert uneven.high - uneven.low > even.high - even.low
    assert uneven.share == pytest.approx((5 * 10 + 5) / (10 * 10 + 30))
    nothing = estimate([])
    assert (nothing.share, nothing.low, nothing.high) == (None, 0, 1)


def test_the_interval_covers_under_the_sampling_design() -> None:
    draw = random.Random(4)
    covered = 0
    for _ in range(400):
        strata = [(20, 0.3), (200, 0.1)] * 30
        truth = sum(size * share for size, share in strata) / sum(size for size, _ in strata)
        actual = estimate([(draw.random() < share, float(size)) for size, share in strata])
        covered += actual.low <= truth <= actual.high
    assert covered >= 370
