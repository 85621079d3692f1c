"""The search for a learning rate: it keeps its budget, finds the best of what it tries, depends on the losses alone."""

import math
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.plan import CorpusFacts, make_plan
from atdp_cli.training.recipe import Recipe, Train, parse_recipe, tunable
from atdp_cli.training.search import MAX_STEPS, MIN_STEPS, SHARE, Search, plan_search, search_rate, tuned_stage

efforts: st.SearchStrategy[Literal["quick", "full"]] = st.sampled_from(["quick", "full"])


def search_of(effort: Literal["quick", "full"], rate: float = 1e-3) -> Search:
    """With steps enough for trials."""
    return plan_search(rate, steps=1000, steps_per_epoch=300, effort=effort)


def bowl(best: float, left: float, right: float) -> Callable[[float, int], float]:
    """A loss that falls and then rises with log η, as steeply as on each side."""

    def loss(rate: float, steps: int) -> float:
        distance = math.log2(rate / best)
        return (left if distance < 0 else right) * abs(distance)

    return loss


@given(efforts, st.integers(1, 100_000), st.integers(1, 100))
def test_trials_take_no_more_than_their_share_of_the_steps(
    effort: Literal["quick", "full"], steps_per_epoch: int, epochs: int
) -> None:
    steps = steps_per_epoch * epochs
    search = plan_search(1e-3, steps=steps, steps_per_epoch=steps_per_epoch, effort=effort)
    assert search.most_steps <= SHARE * steps
    assert search.steps_per_trial == 0 or MIN_STEPS <= search.steps_per_trial <= min(MAX_STEPS, steps_per_epoch)


@pytest.mark.parametrize(("steps", "of_a_trial"), [(27, 0), (111, 0), (112, 7), (127, 7), (128, 8), (10_000, 8)])
def test_a_trial_has_seven_or_eight_steps_or_there_is_none(steps: int, of_a_trial: int) -> None:
    """Of four and five the best on chats is a quarter of the η that is best for the whole stage."""
    search = plan_search(1e-3, steps=steps, steps_per_epoch=steps // 3, effort="quick")
    assert search.steps_per_trial == of_a_trial


@given(st.floats(0.01, 9), st.floats(0.1, 10), st.floats(0.1, 10))
def test_of_losses_that_fall_and_rise_it_finds_the_lowest(best: float, left: float, right: float) -> None:
    """Of every second rate; `full` of all."""
    loss, quick, full = bowl(best * 1e-3, left, right), search_of("quick"), search_of("full")
    for search, rates in ((quick, quick.rates[::2]), (full, full.rates)):
        tuned = search_rate(search, loss)
        assert tuned is not None
        assert loss(tuned.learning_rate, 1) == min(loss(rate, 1) for rate in rates)


@given(efforts, st.randoms(use_true_random=False))
def test_whatever_the_losses_it_takes_the_lowest_and_keeps_to_the_plan(
    effort: Literal["quick", "full"], random: object
) -> None:
    search = search_of(effort)
    losses: dict[float, float] = {}

    def score(rate: float, steps: int) -> float:
        assert steps == search.steps_per_trial
        return losses.setdefault(rate, random.choice([1.0, 2.0, math.inf, random.random()]))  # type: ignore[attr-defined]

    tuned, again = search_rate(search, score), search_rate(search, score)
    assert tuned is not None
    assert tuned == again
    assert len({trial.learning_rate for trial in tuned.trials}) == len(tuned.trials) <= search.most_trials
    assert tuned.steps <= search.most_steps
    assert losses[tuned.learning_rate] == min(trial.loss for trial in tuned.trials)


def test_where_trials_diverge_it_goes_down() -> None:
    tuned = search_rate(search_of("quick"), lambda rate, steps: math.inf if rate > 3e-4 else rate)
    assert tuned is not None
    assert tuned.learning_rate < 3e-4


def test_too_few_steps_have_no_trial() -> None:
    search = plan_search(1e-3, steps=60, steps_per_epoch=20, effort="quick")
    assert search.most_trials == search.most_steps == 0
    assert search_rate(search, lambda rate, steps: 0.0) is None


@given(steps=st.integers(1, 500), memorised=st.booleans())
def test_a_short_stage_warms_up_for_ten_steps_or_half_and_has_no_higher_rate(steps: int, memorised: bool) -> None:
    """Neither the warm-up in steps nor η falls with more steps, and a rate that is given stays."""
    [stage] = [stage for stage in parse_recipe("decoys") if isinstance(stage, Train)]

    def at(count: int, *, fixed: bool = False) -> tuple[float, float]:
        tuned = tuned_stage(stage, steps=count, memorised=memorised, sharded=False, fixed_rate=fixed)
        assert tuned.warmup is not None
        return tuned.warmup * count, tuned.optimizer.learning_rate

    warmup, rate = at(steps)
    longer, higher = at(steps + 1)
    assert min(10, steps / 2) <= warmup + 1e-9
    assert warmup <= longer + 1e-9
    assert 0 < rate <= higher <= 2 * stage.optimizer.learning_rate
    assert (higher > stage.optimizer.learning_rate) <= memorised
    assert at(steps, fixed=True)[1] == stage.optimizer.learning_rate


@pytest.mark.parametrize(
    ("name", "tuned"),
    [
        ("decoys", True),
        ("fitted-decoys", True),
        ("no-dp+fitted-decoys", True),
        ("base", False),
        ("redacted", False),
        ("no-dp", False),
        ("atdp", False),
        ("fitted-decoys+dp-sgd", False),
        ("dp-sgd+fitted-decoys", False),
    ],
)
def test_only_a_last_stage_on_decoys_without_noise_is_tuned(name: str, tuned: bool) -> None:
    recipe: Recipe = parse_recipe(name)
    assert tunable(recipe) is tuned
    corpus = CorpusFacts(records=400, relation=hypothetical("line"))
    as_given, without_trials = (
        make_plan(recipe, corpus, delta=1e-6, checkpoint_history="public", tune=tune).training
        for tune in (None, "none")
    )
    assert (without_trials != as_given) is tuned
    assert all(plan.search is None for plan in without_trials)
