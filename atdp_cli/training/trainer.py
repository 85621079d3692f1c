"""The training loop of one stage: private, noise-only or plain steps."""

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TextIO

import torch
from transformers import PreTrainedModel

from atdp_cli.events import EpochDone, EpochRestored, Notify, StageStarted, StepDone
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.journal import spend
from atdp_cli.privacy.pld import largest_sample, refuse_larger
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.privacy.trace import StepTrace, Trace, Used, ignore_trace
from atdp_cli.training.clip.engine import ClippingEngine, sensitivity, zeros_of
from atdp_cli.training.examples import Example, count_tokens
from atdp_cli.training.gradients import mean_gradient, unclipped_sum
from atdp_cli.training.noise import clip_and_sum, poisson_sample
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.collectives import all_gather
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks, local_items
from atdp_cli.training.plan import StagePlan, step_events
from atdp_cli.training.recipe import DPSGD
from atdp_cli.training.state import (
    AfterStep,
    BestEpoch,
    StageMetrics,
    StageResult,
    StageState,
    generator_states,
    ignore_state,
    set_generators,
)
from atdp_cli.training.step import (
    Noise,
    anneal,
    make_optimizer,
    noisy_step,
    optimizer_step,
    optimizer_tensors,
    restore_optimizer,
    start_of,
)
from atdp_cli.training.trainable import copies, restore

Refresh = Callable[[int], Sequence[Example]]
"""Epoch → the same records, weighed as they are to be in that epoch."""

DecoyedLoss = Callable[[], float]
"""The model's loss as it is now on held-out text with decoys, in nats a token; the same in all processes."""

HeldOut = Callable[[], Perplexity]
"""The held-out perplexity of the model as it is now."""


@dataclass(frozen=True, kw_only=True)
class Randomness:
    """Independent secret streams of one stage."""

    sample: KeyStream
    noise: KeyStream


@dataclass(frozen=True, kw_only=True, eq=False)
class StageRun:
    """The inputs of a stage of any kind.

    Attributes:
        examples: The training records; none for a stage that reads no record.
        held_out: Measured after each epoch.
        decoyed_loss: By which the best epoch is kept, where the stage restores it.
        notify: Receives the stage's events.
        refresh: Called before each epoch for its examples; None where they stay as they are.
        resume_from: Where to resume; None to start at the beginning.
        start: The parameters that train, as they were at the start of the stage; None where the model still has them.
        after_step: Called after each step with the state from which the stage could resume.
        trace: Receives what each step with noise used.
        ranks: The processes that train together. All draw the same samples and noise, for which their streams, or
            their seeds, have to be the same; each computes the gradients of its share of the records, and the sums
            are added up.
    """

    model: PreTrainedModel
    plan: StagePlan
    held_out: HeldOut
    notify: Notify
    examples: Sequence[Example] = ()
    refresh: Refresh | None = None
    decoyed_loss: DecoyedLoss | None = None
    resume_from: StageState | None = None
    start: tuple[torch.Tensor, ...] | None = None
    after_step: AfterStep = ignore_state
    trace: Trace = ignore_trace
    ranks: Ranks = SINGLE_PROCESS


@dataclass(frozen=True, slots=True, eq=False)
class _StepOutcome:
    """The records that a step read, its σ, and the norms of their gradients before clipping where it clips."""

    sample: Sequence[Example] = ()
    noise_multiplier: float | None = None
    norms: torch.Tensor | None = None

    @property
    def tokens(self) -> int:
        return count_tokens(self.sample)


_Step = Callable[[torch.optim.Optimizer, int, Sequence[Example]], _StepOutcome]
"""(optimizer, step counted from 1, the epoch's examples) → takes the step."""


def run_private(
    run: StageRun,
    *,
    engine: ClippingEngine,
    randomness: Randomness,
    journal: TextIO,
    max_steps: int | None = None,
) -> StageResult:
    """DP training (Abadi et al. 2016, Algorithm 1): sample, clip, sum, add noise, divide by B, step.

    Each step's event is in the journal before the step is applied. B is the constant expected batch size, and
    an empty sample steps on noise alone. The model is in eval mode throughout, so that dropout cannot couple
    records.

    Args:
        max_steps: The stage ends after so many of its steps; None for all.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    model, plan, ranks = run.model, run.plan, run.ranks
    events = step_events(plan)
    limits = [largest_sample(len(run.examples), event.sampling_rate) for event in events]

    def step(optimizer: torch.optim.Optimizer, number: int, examples: Sequence[Example]) -> _StepOutcome:
        event = events[(number - 1) // plan.steps_per_epoch]
        used: list[Used] = []
        rows = poisson_sample(len(examples), event.sampling_rate, randomness.sample, used.append)
        sample = [examples[row] for row in rows]
        limit = limits[(number - 1) // plan.steps_per_epoch]
        refuse_larger(len(sample), limit)
        spend(journal, event)
        clipped = clip_and_sum(engine, model, local_items(ranks, sample), event.clip_norm, used.append)
        moved = sensitivity(event.clip_norm, limit, clipped.batch_effect)
        noise = Noise(randomness.noise, event.noise_multiplier * moved, ranks)
        noisy_step(
            model,
            optimizer,
            clipped.gradient,
            noise,
            batch=plan.batch,
            first=number == 1,
            observe=used.append,
        )
        run.trace(_step_trace(plan, number, used))
        return _StepOutcome(sample, event.noise_multiplier, all_gather(ranks, clipped.norms, len(sample)))

    return _run(run, step, max_steps=max_steps)


def run_noise(run: StageRun, *, noise: KeyStream) -> StageResult:
    """The steps of DP training without any record: noise, divided by B, through the optimizer.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    model, plan, mechanism = run.model, run.plan, run.plan.stage.mechanism
    if not isinstance(mechanism, DPSGD):
        raise ValueError(f"stage {plan.stage.name} has no noise")

    def step(optimizer: torch.optim.Optimizer, number: int, _: Sequence[Example]) -> _StepOutcome:
        sigma = plan.noise_multipliers[(number - 1) // plan.steps_per_epoch]
        used: list[Used] = []
        scaled = Noise(noise, sigma * mechanism.clip_norm, run.ranks)
        noisy_step(
            model,
            optimizer,
            zeros_of(model),
            scaled,
            batch=plan.batch,
            first=number == 1,
            observe=used.append,
        )
        run.trace(_step_trace(plan, number, used))
        return _StepOutcome(noise_multiplier=sigma)

    return _run(run, step)


def run_plain(
    run: StageRun, *, seed: int | None = None, engine: ClippingEngine | None = None, precision: Precision = "float32"
) -> StageResult:
    """Ordinary training: shuffled epochs, weighted mean loss over the batch's tokens.

    Args:
        seed: For tests; None draws one from the operating system. A resumed stage keeps the seed that it started
            with.
        engine: Sums the gradients, unclipped; None for autograd, which cannot where parameters are sharded.
        precision: What layers compute in with autograd.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    model, plan, ranks, state = run.model, run.plan, run.ranks, run.resume_from
    if state is not None and state.seed is not None:
        seed = state.seed
    seed = secrets.randbits(63) if seed is None else seed
    start = _start(run)
    summed = unclipped_sum(model, engine, precision, plan.stage.objective, start=start, seed=seed)
    torch.manual_seed(seed + ranks.rank)
    batches = islice(_shuffled_batches(plan, len(run.examples), seed), _taken(state), None)

    def step(optimizer: torch.optim.Optimizer, number: int, examples: Sequence[Example]) -> _StepOutcome:
        if ranks.first and state is not None and number == state.step + 1:
            # Whatever refreshing the examples drew from the generators was drawn before the interruption as well.
            set_generators(state.generators)
        batch = [examples[row] for row in next(batches)]
        optimizer_step(model, optimizer, mean_gradient(model, batch, summed, ranks), ranks, first=number == 1)
        return _StepOutcome(batch)

    return _run(run, step, start=start, seed=seed)


def _run(
    run: StageRun,
    step: _Step,
    *,
    start: tuple[torch.Tensor, ...] = (),
    seed: int | None = None,
    max_steps: int | None = None,
) -> StageResult:
    """Take the steps that are left, epoch by epoch.

    Args:
        start: The parameters at the start of the stage, where its loss compares with them.
        seed: Of a stage with dropout and a shuffled order; None for one with noise, which has neither.
    """
    model, plan, taken = run.model, run.plan, _taken(run.resume_from)
    metrics, examples = StageMetrics.resumed(run.resume_from), run.examples
    best = None if run.resume_from is None else run.resume_from.best
    ended_after = None if max_steps is None or max_steps >= plan.steps else max_steps
    model.train(seed is not None)
    optimizer = _optimizer(run)
    run.notify(StageStarted(stage=plan.stage.name, steps=plan.steps))
    for epoch in range(1, plan.stage.epochs + 1):
        steps = _steps_left(plan, epoch, taken, ended_after)
        if not steps:
            continue
        examples = examples if run.refresh is None else run.refresh(epoch)
        for number in steps:
            anneal(optimizer, plan, number)
            outcome = step(optimizer, number, examples)
            metrics.count(outcome.tokens, outcome.norms)
            run.notify(_step_done(plan, number, outcome))
            if number == epoch * plan.steps_per_epoch:
                model.eval()
                metrics.perplexities.append(_end_epoch(run, epoch))
                best = _best_epoch(run, epoch, best)
                model.train(seed is not None)
            run.after_step(partial(_state, number, metrics, optimizer, start, seed=seed, best=best))
    _restore_epoch(run, best)
    model.eval()
    return metrics.result(ended_after=ended_after, restored_epoch=None if best is None else best.epoch)


def _best_epoch(run: StageRun, epoch: int, best: BestEpoch | None) -> BestEpoch | None:
    """The best epoch so far, the earlier of equals; None where the stage keeps its last one."""
    if not run.plan.stage.restore_best or run.decoyed_loss is None:
        return None
    loss = run.decoyed_loss()
    if best is not None and best.loss <= loss:
        return best
    return BestEpoch(epoch=epoch, loss=loss, parameters=copies(run.model))


def _restore_epoch(run: StageRun, best: BestEpoch | None) -> None:
    """Give the trained parameters the values that they had after the best epoch."""
    if best is None or best.epoch == run.plan.stage.epochs:
        return
    restore(run.model, best.parameters)
    run.notify(EpochRestored(stage=run.plan.stage.name, epoch=best.epoch))


def _taken(state: StageState | None) -> int:
    return 0 if state is None else state.step


def _steps_left(plan: StagePlan, epoch: int, taken: int, last: int | None) -> range:
    """The numbers of the steps of an epoch that are still to be taken, counted from 1 over the whole stage."""
    before = (epoch - 1) * plan.steps_per_epoch
    end = before + plan.steps_per_epoch
    return range(max(before, taken) + 1, (end if last is None else min(end, last)) + 1)


def _start(run: StageRun) -> tuple[torch.Tensor, ...]:
    """The parameters that train, as they were at the start of the stage, where it needs them; else empty."""
    if run.resume_from is not None:
        return run.resume_from.start
    return start_of(run.model, run.plan.stage) if run.start is None else run.start


def _optimizer(run: StageRun) -> torch.optim.Optimizer:
    """The stage's optimizer, fresh or resumed."""
    optimizer = make_optimizer(run.model, run.plan.stage)
    if run.resume_from is not None:
        restore_optimizer(optimizer, run.resume_from.optimizer)
    return optimizer


def _state(
    step: int,
    metrics: StageMetrics,
    optimizer: torch.optim.Optimizer,
    start: tuple[torch.Tensor, ...],
    *,
    seed: int | None,
    best: BestEpoch | None,
) -> StageState:
    return StageState(
        step=step,
        result=metrics.result(),
        optimizer=optimizer_tensors(optimizer),
        start=start,
        seed=seed,
        best=best,
        generators={} if seed is None else generator_states(),
    )


def _step_trace(plan: StagePlan, step: int, used: Sequence[Used]) -> StepTrace:
    epoch = (step - 1) // plan.steps_per_epoch + 1
    return StepTrace(stage=plan.stage.name, epoch=epoch, step=step, uses=tuple(used))


def _step_done(plan: StagePlan, step: int, outcome: _StepOutcome) -> StepDone:
    return StepDone(
        stage=plan.stage.name,
        step=step,
        steps=plan.steps,
        noise_multiplier=outcome.noise_multiplier,
        tokens=outcome.tokens,
    )


def _end_epoch(run: StageRun, epoch: int) -> Perplexity:
    measured = run.held_out()
    run.notify(
        EpochDone(
            stage=run.plan.stage.name,
            epoch=epoch,
            epochs=run.plan.stage.epochs,
            all_tokens=measured.all,
            sensitive=measured.sensitive,
            other=measured.other,
        )
    )
    return measured


def _shuffled_batches(plan: StagePlan, records: int, seed: int) -> Iterator[list[int]]:
    """The rows of each step's batch, epoch after epoch."""
    order = random.Random(seed)  # noqa: S311 - a plain stage promises nothing
    for _ in range(plan.stage.epochs):
        shuffled = order.sample(range(records), records)
        for first in range(0, plan.steps_per_epoch * plan.batch, plan.batch):
            yield shuffled[first : first + plan.batch]
