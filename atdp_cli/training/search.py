"""The search for a stage's learning rate: which rates are tried, for how long, and which wins.

Where the start may have memorised its records, it is a range test: the model is trained for a short time at each of a
few rising η, one after the other (Smith 2017, section 3.3), up to the lowest at which it forgets. Trials, their losses
and the p-values that judge forgetting come from the caller; here are only numbers. No torch.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from atdp_cli.training.objectives import Distilled, Uniform
from atdp_cli.training.recipe import Train

Effort = Literal["none", "quick", "full"]

SHARE = 0.25
"""The largest share of a stage's steps that all trials together take."""

FACTORS = tuple(2.0 ** (power / 2) for power in range(-6, 5))
"""The learning rates that may be tried, over the one that the stage would have without a search."""

STRIDES: dict[str, tuple[int, ...]] = {"quick": (2,), "full": (2, 1)}
"""How far apart neighbours are in `FACTORS`, round by round."""

TRIALS = {2: 4, 1: 2}
"""The most trials of a round, by its stride: those that the lowest of a bowl takes; then one to each side."""

MIN_STEPS, MAX_STEPS = 7, 8
"""The fewest and the most steps of a trial. Of four and five steps the best on long records is at a quarter of the η
that suits the stage; of ten that on short ones at up to four times it."""

WARMUP, WARMUP_STEPS = 0.1, 10
"""The share of a tuned stage's steps over which η rises, and the fewest steps, up to half of them."""

FEW_STEPS, SHORT = 12, 40
"""Below so many steps η falls in proportion, and below so many it is not raised in order to forget: no trial says that
a high η destroys a model that has not warmed up. Chosen on 60 chats of ABCD with stories15M:
tests/benchmarks/defaults.md."""

TRIAL_WARMUP = 0.5
"""The share of a trial's steps over which η rises. A trial is so short that a tenth of its steps is no warm-up, and a
high η then looks too bad."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search as it is planned, from public numbers alone.

    Attributes:
        rates: The learning rates, rising; the middle one of `FACTORS` is tried first.
        strides: Of the rounds.
        steps_per_trial: 0 where the stage has too few steps for trials.
    """

    rates: tuple[float, ...]
    strides: tuple[int, ...]
    steps_per_trial: int

    @property
    def most_trials(self) -> int:
        """Trials, at most."""
        return sum(TRIALS[stride] for stride in self.strides) if self.steps_per_trial else 0

    @property
    def most_steps(self) -> int:
        """Optimizer steps of all trials, at most."""
        return self.most_trials * self.steps_per_trial


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One short run, or one level of a range test.

    Attributes:
        learning_rate: η, the highest of a short run.
        loss: On decoyed held-out text, in nats a token; infinite where it diverged. Private.
        p_values: Of a level, as `RankTests` has them; private too.
    """

    learning_rate: float
    steps: int
    loss: float
    p_values: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The learning rate that a search chose, and its trials in their order; the losses are private."""

    learning_rate: float
    trials: tuple[Trial, ...]

    @property
    def steps(self) -> int:
        """Optimizer steps of all trials."""
        return sum(trial.steps for trial in self.trials)

    @property
    def chosen_on(self) -> Literal["decoy", "raw"]:
        """The text whose losses, or whose values' ranks, chose it."""
        return "raw" if any(trial.p_values for trial in self.trials) else "decoy"


Score = Callable[[float, int], float]
"""(η, steps) → the loss of a short run from the stage's start."""


def plan_search(learning_rate: float, *, steps: int, steps_per_epoch: int, effort: Literal["quick", "full"]) -> Search:
    """The search around the η that the stage has without one.

    Args:
        steps: Of the stage.
        steps_per_epoch: Of it; no trial is longer, so that none reads a record twice.
        effort: `full` has a second round where its trials, as long as those of the first, fit in `SHARE` as well.
    """
    budget, strides = int(SHARE * steps), STRIDES[effort]
    each = min(budget // TRIALS[strides[0]], MAX_STEPS, steps_per_epoch)
    if each * sum(TRIALS[stride] for stride in strides) > budget:
        strides = strides[:1]
    rates = tuple(float(f"{learning_rate * factor:.3g}") for factor in FACTORS)
    return Search(rates=rates, strides=strides, steps_per_trial=each if each >= MIN_STEPS else 0)


def search_rate(search: Search, score: Score) -> Tuned | None:
    """Descend from the learning rate of the plan to the lower of its neighbours, until both have a higher loss.

    That finds the lowest of losses that fall and then rise with η, if trials suffice; a second round does the same
    with nearer neighbours. Of equal losses the lower learning rate wins. None where there are too few steps for trials.
    """
    if not search.steps_per_trial:
        return None
    losses: dict[int, float] = {}
    best = FACTORS.index(1.0)
    for stride in search.strides:
        most = len(losses) + TRIALS[stride]
        while len(losses) < most and (place := _untried(best, stride, losses)) is not None:
            losses[place] = score(search.rates[place], search.steps_per_trial)
            best = min(losses, key=lambda each: (losses[each], each))
    trials = tuple(
        Trial(learning_rate=search.rates[place], steps=search.steps_per_trial, loss=loss)
        for place, loss in losses.items()
    )
    return Tuned(learning_rate=search.rates[best], trials=trials)


def _untried(best: int, stride: int, losses: Mapping[int, float]) -> int | None:
    """The next places to try: at the best place or beside it, the lower side first; None where all that is done."""
    near = (best, best - stride, best + stride)
    return next((place for place in near if place in range(len(FACTORS)) and place not in losses), None)


FORGETTING = 2.0
"""The factor on η where the start may have memorised text, over η from a public start. Chosen on the quickstart:
tests/benchmarks/defaults.md."""


def tuned_stage(stage: Train, *, steps: int, memorised: bool, sharded: bool, fixed_rate: bool) -> Train:
    """The stage with the settings that no trial searches: a warm-up, and the best of its epochs.

    Where the start may have memorised, η is higher, and the last epoch stays: what was memorised is forgotten to the
    last step. What the start has learnt of unflagged text need not be learnt again: it is kept.

    Args:
        steps: Of the stage.
        fixed_rate: Whether η was given, and stays.
    """
    stage = replace(stage, warmup=stage.warmup or max(WARMUP, min(TRIAL_WARMUP, WARMUP_STEPS / steps)))
    if not fixed_rate:
        forgetting = FORGETTING if memorised and steps >= SHORT else 1.0
        rate = stage.optimizer.learning_rate * forgetting * min(1.0, steps / FEW_STEPS)
        stage = replace(stage, optimizer=replace(stage.optimizer, learning_rate=rate))
    if not memorised:
        return replace(stage, restore_best=stage.restore_best is not False)
    return stage if sharded or stage.objective != Uniform() else replace(stage, objective=Distilled())


LEVEL_FACTORS = (1.0, 2.0**0.5)
"""The η of a range test's levels, over the one that the stage would have without a search."""

LEVEL_SHARES = {"quick": 0.03, "full": 0.06}
"""The share of a stage's steps in each level."""

MIN_LEVEL_STEPS = 4
"""The fewest steps of a level."""

AT_CHANCE = 0.1
"""The least p-value with which flagged values of training records count as ranked like those of held-out ones."""

RANKED_VALUES = 100
"""The most values to rank of a sample of training records, and of held-out ones."""

RankTests = Callable[[], Iterable[float]]
"""The p-values, one a sample of training records, of the model as it is now. The first sample chooses a level, and the
others, whose records the first does not have, confirm it; each is computed when it is asked for."""


@dataclass(frozen=True, kw_only=True)
class RangeTest:
    """A range test as it is planned, from public numbers alone.

    Attributes:
        rates: The η of its levels, rising.
        steps_per_trial: Of a level; 0 where the stage has too few steps.
    """

    rates: tuple[float, ...]
    steps_per_trial: int

    @property
    def most_trials(self) -> int:
        """Levels, at most."""
        return len(self.rates) if self.steps_per_trial else 0

    @property
    def most_steps(self) -> int:
        """Optimizer steps of all levels, at most."""
        return self.most_trials * self.steps_per_trial


def plan_range_test(
    learning_rate: float, *, steps: int, steps_per_epoch: int, effort: Literal["quick", "full"]
) -> RangeTest:
    """The range test from the η that the stage has without one.

    Args:
        steps: Of the stage.
        steps_per_epoch: Of it; no level is longer.
    """
    each = min(int(LEVEL_SHARES[effort] * steps), steps_per_epoch)
    rates = tuple(float(f"{learning_rate * factor:.3g}") for factor in LEVEL_FACTORS)
    return RangeTest(rates=rates, steps_per_trial=each if each >= MIN_LEVEL_STEPS else 0)


def lowest_forgetting(test: RangeTest, train: Callable[[float, int], float], rank_tests: RankTests) -> Tuned | None:
    """Train level by level up to the first at which all p-values are at least `AT_CHANCE`, and take its η.

    Where none is, the highest η is taken, or that of the last level at which the model did not diverge. None where the
    stage has too few steps.

    Args:
        train: (η, steps) → the loss after more training at η; infinite where it diverged.
    """
    trials: list[Trial] = []
    for rate in test.rates[: test.most_trials]:
        loss = train(rate, test.steps_per_trial)
        if math.isinf(loss):
            break
        p_values = up_to_failure(rank_tests())
        trials.append(Trial(learning_rate=rate, steps=test.steps_per_trial, loss=loss, p_values=p_values))
        if passes(p_values):
            break
    return Tuned(learning_rate=trials[-1].learning_rate, trials=tuple(trials)) if trials else None


def up_to_failure(p_values: Iterable[float]) -> tuple[float, ...]:
    """The p-values up to and with the first below `AT_CHANCE`."""
    looked_at: list[float] = []
    for p_value in p_values:
        looked_at.append(p_value)
        if p_value < AT_CHANCE:
            break
    return tuple(looked_at)


def passes(p_values: Iterable[float]) -> bool:
    """Whether the model ranks training values like held-out ones in all samples."""
    return all(p_value >= AT_CHANCE for p_value in p_values)
