"""r(w), the share of the weight that sensitive tokens carry, as it comes out."""

import numpy as np
import pytest

from atdp_cli.model.windows import Window
from atdp_cli.training.examples import weigh, weight_share
from atdp_cli.training.objectives import Uniform, Weighted


def window(sensitive: str, function: str) -> Window:
    """A window with these masks, one digit a token; the first token is no target."""
    masks = [np.array([digit == "1" for digit in mask]) for mask in (sensitive, function)]
    nothing = np.zeros(len(sensitive), dtype=np.bool_)
    return Window(record=0, token_ids=np.arange(len(sensitive)), sensitive=masks[0], function=masks[1], ignored=nothing)


def test_it_is_the_papers_share() -> None:
    """4 of 10 targets are sensitive: α/(α + w(1−α)), whatever the lengths of the records."""
    records = [(window("0110", "0000"),), (window("00110000", "00000000"),)]
    for w in (0.0, 0.2, 1.0):
        assert weight_share(records, Weighted(unflagged_weight=w)) == pytest.approx(0.4 / (0.4 + w * 0.6))
    assert weight_share(records, Uniform()) == pytest.approx(0.4)


def test_function_words_lower_it() -> None:
    assert weight_share([(window("01000", "00110"),)], Weighted(unflagged_weight=0.5)) == pytest.approx(1 / 3.5)


def test_without_weight_there_is_no_share() -> None:
    assert weight_share([()], Uniform()) is None
    assert weight_share([(window("00", "00"),)], Weighted(unflagged_weight=0.0)) is None


def test_weights_of_the_record() -> None:
    """α of each record is balanced to r within that record, so r comes out overall."""
    records = [(window("01000", "00000"),), (window("0100", "0000"),)]
    assert weigh(records, Weighted(unflagged_weight="record", target_share=0.6)).share == pytest.approx(0.6)
