"""A step's look at what it has done."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.objectives import Uniform
from atdp_cli.training.plan import CorpusFacts, make_plan
from atdp_cli.training.recipe import SGD, Annealing, NonPrivate, TextVariant, Train
from atdp_cli.training.step import all_finite, anneal

numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([3e38, -3e38, *map(float, ("inf", "-inf", "nan"))]),
)


@given(st.lists(st.lists(numbers, max_size=9), max_size=5))
def test_a_number_that_is_not_finite_is_seen_and_a_large_one_is_none(tensors: list[list[float]]) -> None:
    actual = all_finite([torch.tensor(values, dtype=torch.float32) for values in tensors])
    assert actual == all(math.isfinite(value) for values in tensors for value in values)


def rates(annealing: Annealing, warmup: float | None) -> list[float]:
    """η of each of twenty steps, over η of the stage."""
    stage = Train(
        name="plain",
        text=TextVariant.RAW,
        objective=Uniform(),
        mechanism=NonPrivate(batch_size=10),
        epochs=2,
        optimizer=SGD(learning_rate=0.5),
        annealing=annealing,
        warmup=warmup,
    )
    [plan] = make_plan(
        (stage,), CorpusFacts(records=100, relation=hypothetical()), delta=1e-6, checkpoint_history="public"
    ).training
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    actual = []
    for step in range(1, plan.steps + 1):
        anneal(optimizer, plan, step)
        actual.append(optimizer.param_groups[0]["lr"] / 0.5)
    return actual


def test_a_warm_up_rises_to_the_rate_in_equal_parts_beside_the_annealing() -> None:
    rising = [0.25, 0.5, 0.75, *[1.0] * 17]
    falling = [1 - step / 20 for step in range(20)]
    assert rates("none", None) == [1.0] * 20
    assert rates("linear", None) == falling
    assert rates("none", 0.2) == pytest.approx(rising)
    assert rates("linear", 0.2) == pytest.approx([up * down for up, down in zip(rising, falling, strict=True)])


def test_a_warm_up_of_less_than_a_step_changes_nothing() -> None:
    assert rates("linear", 0.01) == rates("linear", None)
