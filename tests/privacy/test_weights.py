"""The weight w: public, or from its own record alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.noisy_statistic import RECORD_FLOOR, balancing_weight, record_weight


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
