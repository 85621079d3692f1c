"""Trials of learning rates: short trainings on one decoyed copy of the records, from the stage's own start.

From a public start it is post-processing of the stage's release. Records, their order and the length of trials are
public; every text that a trial reads or is judged on has its flagged places drawn anew by that release; and no loss on
raw text has a say. From a start that may have memorised, a range test looks at how raw values rank, and no ε covers
its choice.
"""

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import DivergedError
from atdp_cli.events import ChoiceWarning, LearningRateChosen, Notify, TrialDone, ignore
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.model.windows import Window
from atdp_cli.training.clip.engine import ClippingEngine
from atdp_cli.training.examples import Example
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.collectives import all_reduce_sum
from atdp_cli.training.parallel.ranks import Ranks
from atdp_cli.training.plan import StagePlan, with_chosen_rate
from atdp_cli.training.search import TRIAL_WARMUP, RangeTest, RankTests, Search, Tuned, lowest_forgetting, search_rate
from atdp_cli.training.step import start_of
from atdp_cli.training.trainable import copies, restore
from atdp_cli.training.trainer import StageRun, run_plain

SCORED_RECORDS = 200
"""Held-out records on which trials and epochs are judged, spread over all by position."""

TOO_SMALL = "too few steps for trials; η is that of the plan"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialRun:
    """The inputs of every trial of a stage.

    Attributes:
        examples: The training records of one decoyed copy.
        held_out: Windows of held-out records with decoys.
        seed: Of the order of the records and of dropout, the same in all trials; None draws one.
        after_trial: Called after each trial, the model being again as it was before.
    """

    model: PreTrainedModel
    plan: StagePlan
    examples: Sequence[Example]
    held_out: Sequence[Window]
    seed: int | None
    ranks: Ranks
    engine: ClippingEngine | None
    precision: Precision
    notify: Notify
    after_trial: Callable[[], None]


def search_stage(run: TrialRun, search: Search) -> Tuned | None:
    """Search a stage's learning rate; None where it has too few steps for trials. The model is afterwards as before."""
    start, seed, over = copies(run.model), _seed(run), _over(run, search.most_trials)

    def score(rate: float, steps: int) -> float:
        try:
            loss = _trial(run, rate, steps, seed)
        finally:
            restore(run.model, start)
        over()
        return loss

    return _chosen(run, search_rate(search, score))


def range_test_stage(run: TrialRun, test: RangeTest, rank_tests: RankTests) -> Tuned | None:
    """Search the lowest learning rate at which the model forgets; None where that cannot be found.

    The levels follow each other without a restart, each with an optimizer of its own. The model is afterwards as
    before.

    Args:
        rank_tests: Of the model, in eval mode, as it is when they are computed.
    """
    start, seed, over = copies(run.model), _seed(run), _over(run, test.most_trials)
    stage_start = start_of(run.model, run.plan.stage)
    levels = count()

    def train(rate: float, steps: int) -> float:
        loss = _trial(run, rate, steps, seed + next(levels), annealing="none", start=stage_start)
        reached = copies(run.model)
        restore(run.model, start)
        over()
        restore(run.model, reached)
        return loss

    def agreed_tests() -> Iterator[float]:
        return (_agreed(run.ranks, p_value) for p_value in rank_tests())

    try:
        return _chosen(run, lowest_forgetting(test, train, agreed_tests))
    finally:
        restore(run.model, start)


def _seed(run: TrialRun) -> int:
    return secrets.randbits(62) if run.seed is None else run.seed


def _over(run: TrialRun, most: int) -> Callable[[], None]:
    """The callback after each trial."""
    numbers = count(1)

    def over() -> None:
        run.notify(TrialDone(stage=run.plan.stage.name, done=next(numbers), total=most))
        run.after_trial()

    return over


def _chosen(run: TrialRun, tuned: Tuned | None) -> Tuned | None:
    name = run.plan.stage.name
    if tuned is None:
        run.notify(ChoiceWarning(what=f"stage {name}", reason=TOO_SMALL))
    else:
        run.notify(LearningRateChosen(stage=name, learning_rate=tuned.learning_rate))
    return tuned


def decoyed_loss(model: PreTrainedModel, held_out: Sequence[Window], ranks: Ranks) -> float:
    """Nats a token on held-out windows with decoys; infinite where the model predicts nothing any more."""
    return _agreed(ranks, _loss(perplexity(model, held_out)))


def _trial(
    run: TrialRun,
    rate: float,
    steps: int,
    seed: int,
    *,
    annealing: Literal["none", "linear"] = "linear",
    start: tuple[torch.Tensor, ...] | None = None,
) -> float:
    """The loss after a short run, its η rising to `rate` and, by default, falling to 0; infinite where it diverged.

    Args:
        start: As `StageRun` has it.
    """
    plan = with_chosen_rate(run.plan, rate)
    stage = replace(plan.stage, epochs=1, annealing=annealing, warmup=TRIAL_WARMUP, restore_best=None)
    trial = StageRun(
        model=run.model,
        plan=replace(plan, stage=stage, steps_per_epoch=steps),
        held_out=lambda: perplexity(run.model, run.held_out),
        notify=ignore,
        examples=run.examples,
        start=start,
        ranks=run.ranks,
    )
    try:
        result = run_plain(trial, seed=seed, engine=run.engine, precision=run.precision)
    except DivergedError:
        return math.inf
    return _agreed(run.ranks, _loss(result.perplexities[-1]))


def _loss(measured: Perplexity) -> float:
    value = measured.all
    return math.inf if value is None or not math.isfinite(value) else math.log(value)


def _agreed(ranks: Ranks, loss: float) -> float:
    """The mean over the processes: their models may differ in their last bits, and what they choose may not."""
    total = torch.tensor([loss], dtype=torch.float64)
    all_reduce_sum(ranks, [total])
    return float(total) / ranks.size
