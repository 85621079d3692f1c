"""A stage's optimizer, and one step of it: on a gradient or on a clipped sum with noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.errors import DivergedError, RunError
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.privacy.trace import Observe, ignore_used
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.noise import add_noise
from atdp_cli.training.parallel.collectives import all_reduce_any, all_reduce_sum
from atdp_cli.training.parallel.fsdp import local_shard, shard_like
from atdp_cli.training.parallel.ranks import Ranks
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import AdamW, Train
from atdp_cli.training.trainable import copies


def make_optimizer(model: nn.Module, stage: Train) -> torch.optim.Optimizer:
    """A fresh optimizer of what trains: nothing of an earlier stage's moments flows into this one."""
    settings, parameters = stage.optimizer, trainable(model)
    rate, decay = settings.learning_rate, settings.weight_decay
    if isinstance(settings, AdamW):
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
    return torch.optim.SGD(parameters, lr=rate, weight_decay=decay)


def start_of(model: nn.Module, stage: Train) -> tuple[torch.Tensor, ...]:
    """Copies of the parameters as they are now, where the stage's loss compares with them; else empty."""
    return copies(model) if stage.objective.demands.start else ()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state of an optimizer made by `make_optimizer`: `3.exp_avg` belongs to its parameter number 3.

    The tensors are not copies: the next step changes them.
    """
    return {
        f"{index}.{name}": value
        for index, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Give a fresh optimizer the state of another one for the same parameters."""
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        parameter = parameters[int(index)]
        moved = value.to(parameter.device)
        optimizer.state[parameter][name] = moved if name == "step" else shard_like(parameter, moved)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


@dataclass(frozen=True, slots=True)
class Noise:
    """A stream of normals, the standard deviation σC to which they are scaled, and the processes that add them."""

    stream: KeyStream
    standard_deviation: float
    ranks: Ranks


def anneal(optimizer: torch.optim.Optimizer, plan: StagePlan, step: int) -> None:
    """Set the learning rate η for a step, counted from 1: the k-th of W steps of warm-up has k/W of it."""
    stage = plan.stage
    if stage.annealing == "none" and stage.warmup is None:
        return
    share = 1 - (step - 1) / plan.steps if stage.annealing == "linear" else 1.0
    if stage.warmup is not None:
        share *= min(1.0, step / math.ceil(stage.warmup * plan.steps))
    for group in optimizer.param_groups:
        group["lr"] = stage.optimizer.learning_rate * share


def noisy_step(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    gradient_sum: Sequence[torch.Tensor],
    noise: Noise,
    *,
    batch: int,
    first: bool,
    observe: Observe = ignore_used,
) -> None:
    """Add noise to the clipped sum over all processes, divide it by B = `batch`, and step on it.

    Args:
        gradient_sum: Of this process's records, fp64; overwritten.
        observe: Receives what noise was added by all processes together.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    added = add_noise(gradient_sum, noise.standard_deviation, noise.stream, noise.ranks)
    all_reduce_sum(noise.ranks, [*gradient_sum, added.tally])
    torch._foreach_div_(list(gradient_sum), batch)
    optimizer_step(model, optimizer, gradient_sum, noise.ranks, first=first)
    observe(added.observed())  # last, since it waits for the device


def optimizer_step(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    gradient: Sequence[torch.Tensor],
    ranks: Ranks,
    *,
    first: bool,
) -> None:
    """Step on a gradient that is the same in all processes.

    Raises:
        DivergedError: A parameter is no longer finite.
        RunError: The first step changed nothing.
    """
    parameters = trainable(model)
    before = [local_shard(parameter.detach()).clone() for parameter in parameters] if first else []
    for parameter, part in zip(parameters, gradient, strict=True):
        parameter.grad = shard_like(parameter, part.to(parameter.dtype))
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    diverged = not all_finite([local_shard(parameter.detach()) for parameter in parameters])
    moved = any(not torch.equal(old, local_shard(new)) for old, new in zip(before, parameters, strict=False))
    diverged, moved = all_reduce_any(ranks, (diverged, moved))
    if diverged:
        raise DivergedError("A parameter is no longer a finite number.", "Lower the learning rate and start again.")
    if first and not moved and any(bool(part.any()) for part in gradient):
        raise RunError(
            "The first step changed no parameter.", "Raise the learning rate, or check that parameters are trainable."
        )


def all_finite(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether no number in the tensors is infinite or NaN."""
    # An infinite or NaN number makes its norm so, too. Large finite ones can as well: then each number is checked.
    norms = torch._foreach_norm(list(tensors), 1) if tensors else [torch.zeros(())]
    return bool(torch.stack(list(norms)).isfinite().all()) or all(bool(tensor.isfinite().all()) for tensor in tensors)
