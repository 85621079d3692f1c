"""The weight w: public, or from its own record alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.noisy_statistic import RECORD_FLOOR, balancing_weight, record_weight, released_share, share_sum


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_weight_gives_sensitive_tokens_their_share(alpha: float, share: float) -> None:
    w = balancing_weight(alpha, share)
    assert 0 <= w <= 1
    if alpha < share:
        assert alpha / (alpha + w * (1 - alpha)) == pytest.approx(share)
    else:
        assert w == 1


@given(st.floats(0, 1), st.floats(0.001, 0.999))
def test_a_record_without_flags_still_trains(alpha: float, share: float) -> None:
    assert RECORD_FLOOR <= record_weight(alpha, share) <= 1


@given(st.lists(st.floats(0, 1), min_size=1), st.data())
def test_emptying_a_record_moves_the_sum_by_at_most_one(alphas: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(alphas) - 1))
    emptied = [0.0 if here == place else alpha for here, alpha in enumerate(alphas)]
    [there], [gone] = (share_sum(shares, 60).counts for shares in (alphas, emptied))
    assert 0 <= there - gone <= 2**60
    assert there / 2**60 == pytest.approx(math.fsum(alphas))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_a_share_that_would_break_the_bound_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        share_sum([0.5, alpha], 60)


def test_the_released_share_is_clamped() -> None:
    assert released_share(101.0, 2) == 1.0
    assert released_share(-99.0, 2) == 0.0
    assert released_share(1.2, 2) == pytest.approx(0.6)
