"""The range test of a learning rate: its budget, and that it takes the lowest η at which all samples are at chance."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.ledger import CheckpointHistory, PlainTraining
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.plan import CorpusFacts, StagePlan, make_plan
from atdp_cli.training.recipe import RECIPES
from atdp_cli.training.search import (
    AT_CHANCE,
    FORGETTING,
    LEVEL_FACTORS,
    LEVEL_SHARES,
    MIN_LEVEL_STEPS,
    Effort,
    RangeTest,
    lowest_forgetting,
    plan_range_test,
)

efforts: st.SearchStrategy[Literal["quick", "full"]] = st.sampled_from(["quick", "full"])
p_values = st.floats(0, 1)


def range_test_of(rate: float = 1e-3) -> RangeTest:
    """With steps enough for levels."""
    return plan_range_test(rate, steps=1000, steps_per_epoch=300, effort="quick")


class Model:
    """Remembers until it was trained at its levels; records what it is trained with and which samples are looked at."""

    def __init__(
        self, tests: Sequence[tuple[float, float]], losses: Sequence[float] = (1.0,) * len(LEVEL_FACTORS)
    ) -> None:
        self.tests, self.losses = tests, losses
        self.trained: list[tuple[float, int]] = []
        self.looked_at: list[tuple[int, int]] = []

    def train(self, rate: float, steps: int) -> float:
        self.trained.append((rate, steps))
        return self.losses[len(self.trained) - 1]

    def rank_tests(self) -> Iterator[float]:
        level = len(self.trained) - 1
        for sample, p_value in enumerate(self.tests[level]):
            self.looked_at.append((level, sample))
            yield p_value


@given(efforts, st.integers(1, 100_000), st.integers(1, 100))
def test_levels_take_no_more_than_their_share_of_the_steps(
    effort: Literal["quick", "full"], steps_per_epoch: int, epochs: int
) -> None:
    steps = steps_per_epoch * epochs
    test = plan_range_test(1e-3, steps=steps, steps_per_epoch=steps_per_epoch, effort=effort)
    assert test.steps_per_trial <= LEVEL_SHARES[effort] * steps
    assert test.steps_per_trial == 0 or MIN_LEVEL_STEPS <= test.steps_per_trial <= steps_per_epoch


def test_levels_rise_from_the_rate_of_the_plan() -> None:
    rates = range_test_of(4e-3).rates
    assert rates[0] == 4e-3
    assert [after / before for before, after in pairwise(rates)] == pytest.approx([math.sqrt(2)], rel=5e-3)


@given(st.lists(st.tuples(p_values, p_values), min_size=len(LEVEL_FACTORS), max_size=len(LEVEL_FACTORS)))
def test_the_lowest_rate_at_which_both_samples_are_at_chance_is_taken(tests: list[tuple[float, float]]) -> None:
    test, model = range_test_of(), Model(tests)
    tuned = lowest_forgetting(test, model.train, model.rank_tests)
    assert tuned is not None
    passing = [rate for rate, pair in zip(test.rates, tests, strict=True) if min(pair) >= AT_CHANCE]
    assert tuned.learning_rate == (passing[0] if passing else test.rates[-1])
    levels = test.rates.index(tuned.learning_rate) + 1
    assert model.trained == [(rate, test.steps_per_trial) for rate in test.rates[:levels]]
    assert (len(tuned.trials), tuned.chosen_on) == (levels, "raw")
    # The sample that confirms is looked at only where the first one passed.
    confirmed = [level for level, sample in model.looked_at if sample == 1]
    assert confirmed == [level for level in range(levels) if tests[level][0] >= AT_CHANCE]


def test_a_level_that_diverges_ends_the_test_and_is_not_taken() -> None:
    test, failing = range_test_of(), [(0.0, 0.0)] * len(LEVEL_FACTORS)
    model = Model(failing, (1.0, math.inf))
    tuned = lowest_forgetting(test, model.train, model.rank_tests)
    assert tuned is not None
    assert tuned.learning_rate == test.rates[0]
    assert len(model.trained) == 2
    assert lowest_forgetting(test, Model(failing, (math.inf,)).train, model.rank_tests) is None


def test_a_stage_of_few_steps_has_none() -> None:
    test, model = plan_range_test(1e-3, steps=20, steps_per_epoch=20, effort="full"), Model(())
    assert (test.most_trials, test.most_steps) == (0, 0)
    assert lowest_forgetting(test, model.train, model.rank_tests) is None
    assert model.trained == []


@pytest.mark.parametrize("records", [300, 4000], ids=["too few steps for levels", "enough"])
def test_where_the_start_may_have_memorised_the_rate_is_higher_unless_it_is_given(records: int) -> None:
    def planned(
        checkpoint_history: CheckpointHistory, *, tune: Effort | None = "quick", fixed_rate: bool = False
    ) -> StagePlan:
        corpus = CorpusFacts(records=records, relation=hypothetical("line"))
        recipe = RECIPES["fitted-decoys"]
        return make_plan(
            recipe, corpus, delta=1e-6, checkpoint_history=checkpoint_history, tune=tune, fixed_rate=fixed_rate
        ).training[-1]

    usual = planned("public").stage.optimizer.learning_rate
    higher = planned("unknown")
    assert higher.stage.optimizer.learning_rate == FORGETTING * usual
    assert isinstance(higher.search, RangeTest)
    assert higher.search.rates[0] == FORGETTING * usual
    assert (higher.search.most_trials > 0) is (records == 4000)
    assert planned("unknown", fixed_rate=True).stage.optimizer.learning_rate == usual
    without_trials = planned("unknown", tune="none")
    assert without_trials.stage.optimizer.learning_rate == FORGETTING * usual
    assert without_trials.search is None
    assert {event.chosen_on for event in without_trials.events if isinstance(event, PlainTraining)} == {None}
    assert planned("unknown", tune=None).stage.optimizer.learning_rate == usual
