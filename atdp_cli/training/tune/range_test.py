"""The learning-rate range test: the lowest rate at which a model that may have memorised its records forgets.

The model is trained for a short time at each of a few rising η, one after the other (Smith 2017, section 3.3). Whether
it forgot is judged by p-values that the caller computes; here are only numbers. No torch.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from atdp_cli.training.tune.search import Trial, Tuned

LEVEL_FACTORS = (1.0, 2.0**0.5)
"""The η of its levels, over the one that the stage would have without a search."""

LEVEL_SHARES = {"quick": 0.03, "full": 0.06}
"""Of a stage's steps, those of a level."""

MIN_LEVEL_STEPS = 4
"""Of a level."""

AT_CHANCE = 0.1
"""The least p-value with which flagged values of training records count as ranked like those of held-out ones."""

RANKED_VALUES = 100
"""Of a sample of training records, and of held-out ones, at most."""

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
    """Those up to the first below `AT_CHANCE`, and that one."""
    looked_at: list[float] = []
    for p_value in p_values:
        looked_at.append(p_value)
        if p_value < AT_CHANCE:
            break
    return tuple(looked_at)


def passes(p_values: Iterable[float]) -> bool:
    """Whether the model ranks training values like held-out ones in all samples."""
    return all(p_value >= AT_CHANCE for p_value in p_values)
