"""One stage: the loop over its steps."""

import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TextIO

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import DivergedError, RunError
from atdp_cli.events import EpochDone, Notify, StageStarted, StepDone
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.csprng import KeyStream
from atdp_cli.privacy.journal import spend
from atdp_cli.privacy.ledger import SubsampledGaussian
from atdp_cli.training.adambc import AdamBC
from atdp_cli.training.clipping.batches import default_tokens, split
from atdp_cli.training.clipping.engine import ClippingEngine, summed_in, trainable
from atdp_cli.training.clipping.forward import logits_of, loss_gradient
from atdp_cli.training.noise import add_noise
from atdp_cli.training.objective import Example
from atdp_cli.training.optimizers import make_optimizer, optimizer_tensors, restore_optimizer, start_of
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import DPSGD
from atdp_cli.training.sampling import poisson_sample
from atdp_cli.training.subset import training_only
from atdp_cli.training.underway import AfterStep, StageResult, Tally, Underway, generator_states, go_on, set_generators

Refresh = Callable[[int], Sequence[Example]]
"""The same records as they are weighed from this epoch on."""

Enough = Callable[[], bool]
"""Whether the model as it stands needs no more of a stage."""

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
    enough: Enough | None = None,
    begun: Underway | None = None,
    most: int | None = None,
    after_step: AfterStep = go_on,
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

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    tally, stopped_after = Tally.since(begun), None
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
                _anneal(optimizer, plan, step)
                chosen = _drawn(examples, event.sampling_rate, randomness.sample)
                spend(journal, event)
                clipped = engine(model, chosen, event.clip_norm)
                noise = _Noise(randomness.noise, event.noise_multiplier * event.clip_norm)
                _apply_noisy(model, optimizer, clipped.gradient, noise, batch=plan.batch, first=step == 1)
                tally.count(clipped.norms)
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
    begun: Underway | None = None,
    after_step: AfterStep = go_on,
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
    tally = Tally.since(begun)
    with training_only(model, plan.stage.layers):
        model.eval()
        optimizer, start = _optimizer(model, plan, begun)
        notify(StageStarted(stage=plan.stage.name, steps=plan.steps))
        for epoch, sigma in enumerate(plan.noise_multipliers, start=1):
            for step in _steps_left(plan, epoch, begun, plan.steps):
                _anneal(optimizer, plan, step)
                gradient = tuple(torch.zeros_like(part, dtype=summed_in(part)) for part in trainable(model))
                scaled = _Noise(noise, sigma * mechanism.clip_norm)
                _apply_noisy(model, optimizer, gradient, scaled, batch=plan.batch, first=step == 1)
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
    begun: Underway | None = None,
    after_step: AfterStep = go_on,
) -> StageResult:
    """Ordinary training: shuffled epochs, weighted mean loss over the batch's tokens.

    Args:
        seed: For tests; None draws one from the operating system.
        refresh: Asked before each epoch; None where the examples stay as they are.
        begun: Where to go on, with the seed that was drawn then; None for the beginning.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    seed = _seed(seed, begun)
    at_once = default_tokens(model)
    order = random.Random(seed)  # noqa: S311 - a plain stage promises nothing
    torch.manual_seed(seed)
    tally = Tally.since(begun)
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
            if begun is not None and steps[0] == begun.step + 1:
                # What the epoch's examples drew from the generators was drawn before it began.
                set_generators(begun.generators)
            for step in steps:
                _anneal(optimizer, plan, step)
                first = (step - 1) % plan.steps_per_epoch * plan.batch
                chosen = [examples[row] for row in shuffled[first : first + plan.batch]]
                _apply(model, optimizer, _mean_gradient(model, chosen, at_once), first=step == 1)
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


def _steps_left(plan: StagePlan, epoch: int, begun: Underway | None, last: int) -> range:
    """The numbers of the steps of an epoch that are still to be taken, counted from 1 over the whole stage."""
    taken = 0 if begun is None else begun.step
    before = (epoch - 1) * plan.steps_per_epoch
    return range(max(before, taken) + 1, min(before + plan.steps_per_epoch, last) + 1)


def _seed(seed: int | None, begun: Underway | None) -> int:
    if begun is not None and begun.seed is not None:
        return begun.seed
    return secrets.randbits(63) if seed is None else seed


def _optimizer(
    model: PreTrainedModel, plan: StagePlan, begun: Underway | None
) -> tuple[torch.optim.Optimizer, tuple[torch.Tensor, ...]]:
    """The stage's optimizer as it is at its beginning or where it goes on, and what weight decay draws towards."""
    start = start_of(model, plan.stage) if begun is None else begun.start
    optimizer = make_optimizer(model, plan.stage, start)
    if begun is not None:
        restore_optimizer(optimizer, begun.optimizer)
    return optimizer, start


def _underway(
    step: int,
    tally: Tally,
    optimizer: torch.optim.Optimizer,
    start: tuple[torch.Tensor, ...],
    seed: int | None = None,
) -> Underway:
    return Underway(
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


def _mean_gradient(model: PreTrainedModel, chosen: Sequence[Example], tokens: int) -> tuple[torch.Tensor, ...]:
    """The gradient of the weighted mean loss over the batch's tokens, a physical batch at a time."""
    parameters = trainable(model)
    total = [torch.zeros_like(parameter) for parameter in parameters]
    weight = sum(float(values[1:].sum()) for example in chosen for values in example.weights)
    for batch in split(chosen, tokens):
        logits = logits_of(model, batch, positions=False)
        found = torch.autograd.grad(logits, parameters, loss_gradient(logits, batch), materialize_grads=True)
        for part, share in zip(total, found, strict=True):
            part.add_(share, alpha=1 / max(weight, 1e-6))
    return tuple(total)


def _anneal(optimizer: torch.optim.Optimizer, plan: StagePlan, step: int) -> None:
    """Set η for a step, counted from 1."""
    if plan.stage.annealing == "linear":
        for group in optimizer.param_groups:
            group["lr"] = plan.stage.optimizer.learning_rate * (1 - (step - 1) / plan.steps)


def _drawn(examples: Sequence[Example], rate: float, stream: KeyStream) -> list[Example]:
    return [examples[row] for row in poisson_sample(len(examples), rate, stream)]


@dataclass(frozen=True, slots=True)
class _Noise:
    """A stream of normals, and the standard deviation σC to which they are scaled."""

    stream: KeyStream
    deviation: float


def _apply_noisy(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    gradient_sum: Sequence[torch.Tensor],
    noise: _Noise,
    *,
    batch: int,
    first: bool,
) -> None:
    """Add noise to a clipped sum, divide it by B = `batch`, and step on it."""
    add_noise(gradient_sum, noise.deviation, noise.stream)
    if isinstance(optimizer, AdamBC):
        optimizer.tell((noise.deviation / batch) ** 2)
    _apply(model, optimizer, [part.div_(batch) for part in gradient_sum], first=first)


def _apply(
    model: PreTrainedModel, optimizer: torch.optim.Optimizer, gradient: Sequence[torch.Tensor], *, first: bool
) -> None:
    parameters = trainable(model)
    before = [parameter.detach().clone() for parameter in parameters] if first else []
    for parameter, part in zip(parameters, gradient, strict=True):
        parameter.grad = part
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if not all(bool(torch.isfinite(parameter).all()) for parameter in parameters):
        raise DivergedError("A parameter is no longer a finite number.", "Lower the learning rate and start again.")
    moved = any(not torch.equal(old, new) for old, new in zip(before, parameters, strict=False))
    if first and not moved and any(bool(part.any()) for part in gradient):
        raise RunError(
            "The first step changed no parameter.", "Raise the learning rate, or check that parameters are trainable."
        )


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
