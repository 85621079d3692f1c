"""Whole numbers from a key stream."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from atdp_cli.privacy.rng import Floats, KeyStream, insecure_stream
from atdp_cli.replacement.decoys import integer_draws


@pytest.mark.parametrize("n", [2, 6, 10, 26, 301])
def test_they_are_uniform(n: int) -> None:
    draw = integer_draws(insecure_stream(3, "test"))
    counts = Counter(draw(n) for _ in range(200 * n))
    assert set(counts) == set(range(n))
    assert chisquare(list(counts.values())).pvalue > 1e-4


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_they_are_the_streams_and_below_n(bounds: list[int]) -> None:
    uniforms = insecure_stream(1, "test").uniforms(len(bounds))
    draw = integer_draws(insecure_stream(1, "test"))
    assert [draw(n) for n in bounds] == [int(u * n) for u, n in zip(uniforms, bounds, strict=True)]


def test_the_largest_uniform_gives_no_number_too_large() -> None:
    """53 ones and the half step behind them round to 1."""

    class Ones(KeyStream):
        def uniforms(self, count: int) -> Floats:
            return (np.full(count, 2.0**53 - 1) + 0.5) * 2.0**-53

    assert Ones(bytes(32)).uniforms(1)[0] == 1.0
    assert [integer_draws(Ones(bytes(32)))(n) for n in (1, 10, 301)] == [0, 9, 300]
