"""A step's look at what it has done."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.training.step import all_finite

numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([3e38, -3e38, *map(float, ("inf", "-inf", "nan"))]),
)


@given(st.lists(st.lists(numbers, max_size=9), max_size=5))
def test_a_number_that_is_not_finite_is_seen_and_a_large_one_is_none(tensors: list[list[float]]) -> None:
    found = all_finite([torch.tensor(values, dtype=torch.float32) for values in tensors])
    assert found == all(math.isfinite(value) for values in tensors for value in values)
