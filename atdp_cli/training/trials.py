"""The search for a stage's learning rate: short trials on one decoyed copy of the records, from the stage's own start.

It is post-processing of the stage's release. Records, their order and the length of trials are public; every text that
a trial reads or is judged on has its flagged places drawn anew by that release; and no loss on raw text has a say.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import DivergedError
from atdp_cli.events import FellBack, LearningRateChosen, Notify, TrialDone, ignore
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.model.windows import Window
from atdp_cli.training.clipping.engine import ClippingEngine
from atdp_cli.training.distributed.collectives import all_reduce_sum
from atdp_cli.training.distributed.ranks import Ranks
from atdp_cli.training.execution import Precision
from atdp_cli.training.loop import StageRun, run_plain
from atdp_cli.training.objective import Example
from atdp_cli.training.plan import StagePlan, with_chosen_rate
from atdp_cli.training.search import TRIAL_WARMUP, Search, Tuned, search_rate
from atdp_cli.training.trainable import copies, restore

SCORED_RECORDS = 200
"""Held-out records on which trials and epochs are judged, spread over all by position."""

TOO_SMALL = "too few steps for trials; the learning rate is that of the plan"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialRun:
    """What every trial of a stage runs with.

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
    name, done = run.plan.stage.name, 0
    start, seed = copies(run.model), secrets.randbits(63) if run.seed is None else run.seed

    def score(rate: float, steps: int) -> float:
        nonlocal done
        try:
            loss = _trial(run, rate, steps, seed)
        finally:
            restore(run.model, start)
        done += 1
        run.notify(TrialDone(stage=name, done=done, total=search.most_trials))
        run.after_trial()
        return loss

    tuned = search_rate(search, score)
    if tuned is None:
        run.notify(FellBack(what=f"stage {name}", reason=TOO_SMALL))
    else:
        run.notify(LearningRateChosen(stage=name, learning_rate=tuned.learning_rate))
    return tuned


def decoyed_loss(model: PreTrainedModel, held_out: Sequence[Window], ranks: Ranks) -> float:
    """Nats a token on held-out windows with decoys; infinite where the model predicts nothing any more."""
    return _agreed(ranks, _loss(perplexity(model, held_out)))


def _trial(run: TrialRun, rate: float, steps: int, seed: int) -> float:
    """The loss after a short run, its η rising to `rate` and falling to 0; infinite where it diverged."""
    plan = with_chosen_rate(run.plan, rate)
    stage = replace(plan.stage, epochs=1, annealing="linear", warmup=TRIAL_WARMUP, restore_best=None)
    trial = StageRun(
        model=run.model,
        plan=replace(plan, stage=stage, steps_per_epoch=steps),
        held_out=lambda: perplexity(run.model, run.held_out),
        notify=ignore,
        examples=run.examples,
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
