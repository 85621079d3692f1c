"""One stage: the loop over its steps."""

import math
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TextIO

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.events import EpochDone, Notify, StageStarted, StepDone
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.journal import spend
from atdp_cli.privacy.ledger import SubsampledGaussian
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.training.clipping.batches import default_tokens, split
from atdp_cli.training.clipping.engine import ClippingEngine, trainable, zeros_of
from atdp_cli.training.clipping.forward import batch_logits, loss_gradient
from atdp_cli.training.distributed.collectives import all_gather, all_reduce_sum
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks, local_items
from atdp_cli.training.execution import Precision
from atdp_cli.training.objective import Example
from atdp_cli.training.optimizers import make_optimizer, optimizer_tensors, restore_optimizer, start_of
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.precision import in_precision
from atdp_cli.training.recipe import DPSGD
from atdp_cli.training.state import (
    AfterStep,
    StageMetrics,
    StageResult,
    StageState,
    generator_states,
    ignore_state,
    set_generators,
)
from atdp_cli.training.step import Noise, anneal, noisy_step, optimizer_step
from atdp_cli.training.trainable import training_only

Refresh = Callable[[int], Sequence[Example]]
"""The same records as they are weighed from this epoch on."""

StopCriterion = Callable[[], bool]
"""Whether the model as it stands needs no more of a stage."""

GradientSum = Callable[[PreTrainedModel, Sequence[Example]], tuple[torch.Tensor, ...]]
"""The gradient of some records' weighted losses, a tensor for each trainable parameter."""

HeldOut = Callable[[], Perplexity]
"""The held-out perplexity of the model as it stands."""


@dataclass(frozen=True, kw_only=True)
class Randomness:
    """Independent secret streams of one stage."""

    sample: KeyStream
    noise: KeyStream


def run_private(
    model: PreTrainedModel,
    examples: Sequence[Example],
    plan: StagePlan,
    *,
    engine: ClippingEngine,
    randomness: Randomness,
    journal: TextIO,
    held_out: HeldOut,
    notify: Notify,
    refresh: Refresh | None = None,
    enough: StopCriterion | None = None,
    begun: StageState | None = None,
    most: int | None = None,
    after_step: AfterStep = ignore_state,
    ranks: Ranks = SINGLE_PROCESS,
) -> StageResult:
    """DP training (Abadi et al. 2016, Algorithm 1): sample, clip, sum, add noise, divide by B, step.

    Each step's event is in the journal before the step is applied. B is the constant expected batch size, and
    an empty sample steps on noise alone. The model is in eval mode throughout, so that dropout cannot couple
    records.

    Args:
        refresh: Asked before each epoch; None where the examples stay as they are.
        enough: Asked after each epoch; when it is, the steps that are left are not taken, but spent: when a stage
            stops depends on its records, and is covered as a consequence of the whole.
        begun: Where to go on; None for the beginning.
        most: The stage ends after so many of its steps; None where all may be taken.
        ranks: Who trains. All draw the same sample, for which `randomness` has to be the same in all of them; each
            clips its share of the records, and the sums are added up.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    tally, stopped_after = StageMetrics.since(begun), None
    events = _one_step_events(plan)
    last = plan.steps if most is None else min(most, plan.steps)
    with training_only(model, plan.stage.layers):
        model.eval()
        optimizer, start = _optimizer(model, plan, begun)
        notify(StageStarted(stage=plan.stage.name, steps=plan.steps))
        for epoch, event in enumerate(events, start=1):
            steps = _steps_left(plan, epoch, begun, last)
            if not steps:
                continue
            examples = examples if refresh is None else refresh(epoch)
            for step in steps:
                anneal(optimizer, plan, step)
                chosen = _drawn(examples, event.sampling_rate, randomness.sample)
                spend(journal, event)
                clipped = engine(model, local_items(ranks, chosen), event.clip_norm)
                noise = Noise(randomness.noise, event.noise_multiplier * event.clip_norm, ranks)
                noisy_step(model, optimizer, clipped.gradient, noise, batch=plan.batch, first=step == 1)
                tally.count(all_gather(ranks, clipped.norms, len(chosen)))
                done = _done(plan, step, event.noise_multiplier, chosen)
                tally.tokens += done.tokens
                notify(done)
                if step < epoch * plan.steps_per_epoch:
                    after_step(partial(_underway, step, tally, optimizer, start))
            if steps[-1] < epoch * plan.steps_per_epoch:
                break
            tally.perplexities.append(_end_epoch(plan, epoch, held_out, notify))
            if enough is not None and epoch < len(events) and enough():
                _spend_rest(journal, plan, epoch, last)
                stopped_after = epoch
                break
            after_step(partial(_underway, steps[-1], tally, optimizer, start))
    return tally.result(stopped_after=stopped_after, ended_after=last if last < plan.steps else None)


def run_noise(
    model: PreTrainedModel,
    plan: StagePlan,
    *,
    noise: KeyStream,
    held_out: HeldOut,
    notify: Notify,
    begun: StageState | None = None,
    after_step: AfterStep = ignore_state,
    ranks: Ranks = SINGLE_PROCESS,
) -> StageResult:
    """The steps of DP training with no record in any: noise, divided by B, through the optimizer.

    Args:
        begun: Where to go on; None for the beginning.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    mechanism = plan.stage.mechanism
    if not isinstance(mechanism, DPSGD):
        raise ValueError(f"stage {plan.stage.name} has no noise")
    tally = StageMetrics.since(begun)
    with training_only(model, plan.stage.layers):
        model.eval()
        optimizer, start = _optimizer(model, plan, begun)
        notify(StageStarted(stage=plan.stage.name, steps=plan.steps))
        for epoch, sigma in enumerate(plan.noise_multipliers, start=1):
            for step in _steps_left(plan, epoch, begun, plan.steps):
                anneal(optimizer, plan, step)
                gradient = zeros_of(model)
                scaled = Noise(noise, sigma * mechanism.clip_norm, ranks)
                noisy_step(model, optimizer, gradient, scaled, batch=plan.batch, first=step == 1)
                notify(_done(plan, step, sigma, ()))
                if step == epoch * plan.steps_per_epoch:
                    tally.perplexities.append(_end_epoch(plan, epoch, held_out, notify))
                after_step(partial(_underway, step, tally, optimizer, start))
    return tally.result()


def run_plain(
    model: PreTrainedModel,
    examples: Sequence[Example],
    plan: StagePlan,
    *,
    held_out: HeldOut,
    notify: Notify,
    seed: int | None = None,
    refresh: Refresh | None = None,
    begun: StageState | None = None,
    after_step: AfterStep = ignore_state,
    engine: ClippingEngine | None = None,
    precision: Precision = "float32",
    ranks: Ranks = SINGLE_PROCESS,
) -> StageResult:
    """Ordinary training: shuffled epochs, weighted mean loss over the batch's tokens.

    Args:
        seed: For tests; None draws one from the operating system. Several processes need one and the same.
        refresh: Asked before each epoch; None where the examples stay as they are.
        begun: Where to go on, with the seed that was drawn then; None for the beginning.
        engine: What sums gradients, unclipped; None for autograd, which cannot where parameters are sharded.
        precision: What layers compute in with autograd.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    seed = _seed(seed, begun)
    autograd = in_precision(precision, partial(gradient_sum, tokens=default_tokens(model)))
    summed = autograd if engine is None else partial(_unclipped, engine)
    order = random.Random(seed)  # noqa: S311 - a plain stage promises nothing
    torch.manual_seed(seed + ranks.rank)
    tally = StageMetrics.since(begun)
    with training_only(model, plan.stage.layers):
        model.train()
        optimizer, start = _optimizer(model, plan, begun)
        notify(StageStarted(stage=plan.stage.name, steps=plan.steps))
        for epoch in range(1, plan.stage.epochs + 1):
            shuffled = order.sample(range(len(examples)), len(examples))
            steps = _steps_left(plan, epoch, begun, plan.steps)
            if not steps:
                continue
            examples = examples if refresh is None else refresh(epoch)
            if ranks.first and begun is not None and steps[0] == begun.step + 1:
                # What the epoch's examples drew from the generators was drawn before it began.
                set_generators(begun.generators)
            for step in steps:
                anneal(optimizer, plan, step)
                first = (step - 1) % plan.steps_per_epoch * plan.batch
                chosen = [examples[row] for row in shuffled[first : first + plan.batch]]
                gradient = _mean_gradient(model, chosen, summed, ranks)
                optimizer_step(model, optimizer, gradient, ranks, first=step == 1)
                done = _done(plan, step, None, chosen)
                tally.tokens += done.tokens
                notify(done)
                if step == steps[-1]:
                    model.eval()
                    tally.perplexities.append(_end_epoch(plan, epoch, held_out, notify))
                    model.train()
                after_step(partial(_underway, step, tally, optimizer, start, seed))
    model.eval()
    return tally.result()


def _steps_left(plan: StagePlan, epoch: int, begun: StageState | None, last: int) -> range:
    """The numbers of the steps of an epoch that are still to be taken, counted from 1 over the whole stage."""
    taken = 0 if begun is None else begun.step
    before = (epoch - 1) * plan.steps_per_epoch
    return range(max(before, taken) + 1, min(before + plan.steps_per_epoch, last) + 1)


def _seed(seed: int | None, begun: StageState | None) -> int:
    if begun is not None and begun.seed is not None:
        return begun.seed
    return secrets.randbits(63) if seed is None else seed


def _optimizer(
    model: PreTrainedModel, plan: StagePlan, begun: StageState | None
) -> tuple[torch.optim.Optimizer, tuple[torch.Tensor, ...]]:
    """The stage's optimizer as it is at its beginning or where it goes on, and what weight decay draws towards."""
    start = start_of(model, plan.stage) if begun is None else begun.start
    optimizer = make_optimizer(model, plan.stage, start)
    if begun is not None:
        restore_optimizer(optimizer, begun.optimizer)
    return optimizer, start


def _underway(
    step: int,
    tally: StageMetrics,
    optimizer: torch.optim.Optimizer,
    start: tuple[torch.Tensor, ...],
    seed: int | None = None,
) -> StageState:
    return StageState(
        step=step,
        result=tally.result(),
        optimizer=optimizer_tensors(optimizer),
        start=start,
        seed=seed,
        generators={} if seed is None else generator_states(),
    )


def _spend_rest(journal: TextIO, plan: StagePlan, epoch: int, last: int) -> None:
    """Spend the steps behind an epoch, up to the last that may be taken."""
    for later, event in list(enumerate(_one_step_events(plan), start=1))[epoch:]:
        if steps := len(_steps_left(plan, later, None, last)):
            spend(journal, event.model_copy(update={"steps": steps}))


def _mean_gradient(
    model: PreTrainedModel, chosen: Sequence[Example], summed: GradientSum, ranks: Ranks
) -> tuple[torch.Tensor, ...]:
    """The gradient of the weighted mean loss over the batch's tokens."""
    weight = sum(float(values[1:].sum()) for example in chosen for values in example.weights)
    total = summed(model, local_items(ranks, chosen))
    for part in total:
        part.div_(max(weight, 1e-6))
    all_reduce_sum(ranks, total)
    return total


def gradient_sum(model: PreTrainedModel, records: Sequence[Example], *, tokens: int) -> tuple[torch.Tensor, ...]:
    """The gradient of the records' weighted losses, a physical batch of at most so many tokens at a time."""
    parameters = trainable(model)
    total = zeros_of(model)
    for batch in split(records, tokens):
        logits = batch_logits(model, batch, positions=False)
        found = torch.autograd.grad(logits, parameters, loss_gradient(logits, batch), materialize_grads=True)
        for part, own in zip(total, found, strict=True):
            part.add_(own)
    return total


def _unclipped(engine: ClippingEngine, model: PreTrainedModel, records: Sequence[Example]) -> tuple[torch.Tensor, ...]:
    return engine(model, records, math.inf).gradient


def _drawn(examples: Sequence[Example], rate: float, stream: KeyStream) -> list[Example]:
    return [examples[row] for row in poisson_sample(len(examples), rate, stream)]


def _done(plan: StagePlan, step: int, sigma: float | None, chosen: Sequence[Example]) -> StepDone:
    tokens = sum(len(window.token_ids) for example in chosen for window in example.windows)
    return StepDone(stage=plan.stage.name, step=step, steps=plan.steps, noise_multiplier=sigma, tokens=tokens)


def _end_epoch(plan: StagePlan, epoch: int, held_out: HeldOut, notify: Notify) -> Perplexity:
    found = held_out()
    notify(
        EpochDone(
            stage=plan.stage.name,
            epoch=epoch,
            epochs=plan.stage.epochs,
            all_tokens=found.all,
            sensitive=found.sensitive,
            other=found.other,
        )
    )
    return found


def _one_step_events(plan: StagePlan) -> list[SubsampledGaussian]:
    """What one step of each epoch spends."""
    mechanism = plan.stage.mechanism
    if not isinstance(mechanism, DPSGD) or plan.sampling_rate is None:
        raise ValueError(f"stage {plan.stage.name} is not private")
    return [
        SubsampledGaussian(
            stage=plan.stage.name,
            sampling_rate=plan.sampling_rate,
            noise_multiplier=sigma,
            clip_norm=mechanism.clip_norm,
            steps=1,
        )
        for sigma in plan.noise_multipliers
    ]


def poisson_sample(records: int, sampling_rate: float, stream: KeyStream) -> npt.NDArray[np.int64]:
    """Indices of the records in this step: each one independently with probability q; it may be empty.

    The amplification that the accountant grants needs this sample to stay secret.
    """
    return np.flatnonzero(stream.uniforms(records) < sampling_rate).astype(np.int64)
