"""The search for a stage's learning rate: which rates are tried, for how long, and which wins.

Trials and their losses come from the caller; here are only public numbers. No torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from atdp_cli.training.objectives import Distilled, Uniform
from atdp_cli.training.recipe import Train

Effort = Literal["none", "quick", "full"]

SHARE = 0.25
"""Of a stage's steps, the most that all trials together take."""

FACTORS = tuple(2.0 ** (power / 2) for power in range(-6, 5))
"""The learning rates that may be tried, over the one that the stage would have without a search."""

STRIDES: dict[str, tuple[int, ...]] = {"quick": (2,), "full": (2, 1)}
"""How far apart neighbours are in `FACTORS`, round by round."""

TRIALS = {2: 4, 1: 2}
"""Of a round, by its stride, the most: those that the lowest of a bowl takes; then one to each side."""

MIN_STEPS, MAX_STEPS = 7, 8
"""Of a trial. Of four and five steps the best on long records is at a quarter of the η that suits the stage; of ten
that on short ones at up to four times it."""

WARMUP = 0.1
"""The share of a tuned stage's steps over which η rises."""

TRIAL_WARMUP = 0.5
"""That of a trial's. A trial is so short that a tenth of its steps is no warm-up, and a high η then looks too bad."""


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
    """Where to try next: at the best place or beside it, the lower side first; None where all that is done."""
    near = (best, best - stride, best + stride)
    return next((place for place in near if place in range(len(FACTORS)) and place not in losses), None)


FORGETTING = 2.0
"""η where the start may have memorised, over η from a public start. Chosen on the quickstart: docs/measured.md."""


def tuned_stage(stage: Train, *, memorised: bool, sharded: bool, fixed_rate: bool) -> Train:
    """The stage with the settings that no trial searches: a warm-up, and the best of its epochs.

    Where the start may have memorised, η is higher, and the last epoch stays: what was memorised is forgotten to the
    last step. What the start has learnt of unflagged text need not be learnt again: it is kept.

    Args:
        fixed_rate: Whether η was given, and stays.
    """
    stage = replace(stage, warmup=stage.warmup or WARMUP)
    if not memorised:
        return replace(stage, restore_best=stage.restore_best is not False)
    if not fixed_rate:
        rate = stage.optimizer.learning_rate * FORGETTING
        stage = replace(stage, optimizer=replace(stage.optimizer, learning_rate=rate))
    return stage if sharded or stage.objective != Uniform() else replace(stage, objective=Distilled())
