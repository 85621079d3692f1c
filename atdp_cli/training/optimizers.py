"""A stage's optimizer: made from its settings, saved and restored."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.distributed.fsdp import local_shard, shard_like
from atdp_cli.training.dp_adambc import DPAdamBC
from atdp_cli.training.recipe import AdamBC, AdamW, Train, keeps_start


def make_optimizer(
    model: nn.Module, stage: Train, start: Sequence[torch.Tensor] | None = None
) -> torch.optim.Optimizer:
    """A fresh optimizer of what trains: nothing of an earlier stage's moments flows into this one.

    Args:
        start: The parameters that weight decay draws towards, where it does not draw towards zero; None for the
            parameters as they are now.
    """
    settings, parameters = stage.optimizer, trainable(model)
    rate, decay = settings.learning_rate, settings.weight_decay
    own = decay if settings.towards == "zero" else 0.0
    optimizer: torch.optim.Optimizer
    if isinstance(settings, AdamBC):
        optimizer = DPAdamBC(parameters, learning_rate=rate, weight_decay=own, floor=settings.floor)
    elif isinstance(settings, AdamW):
        optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=own, fused=True)
    else:
        optimizer = torch.optim.SGD(parameters, lr=rate, weight_decay=own)
    if own != decay:
        _pull_back(optimizer, parameters, rate * decay, start_of(model, stage) if start is None else start)
    return optimizer


def start_of(model: nn.Module, stage: Train) -> tuple[torch.Tensor, ...]:
    """Copies of the parameters as they are now, where the stage will need them; else empty."""
    if not keeps_start(stage):
        return ()
    return tuple(parameter.detach().clone() for parameter in trainable(model))


def _pull_back(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[torch.nn.Parameter],
    share: float,
    start: Sequence[torch.Tensor],
) -> None:
    """Before each step, as AdamW's own decay: θ ← θ + share·(θ₀ − θ), where θ₀ is `start`."""

    @torch.no_grad()
    def pull(*_: Any) -> None:
        for parameter, origin in zip(parameters, start, strict=True):
            local_shard(parameter).lerp_(local_shard(shard_like(parameter, origin)), share)

    optimizer.register_step_pre_hook(pull)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The state of an optimizer made by `make_optimizer`: `3.exp_avg` belongs to its parameter number 3.

    The tensors are not copies: the next step changes them.
    """
    tensors = {
        f"{index}.{name}": value
        for index, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }
    if isinstance(optimizer, DPAdamBC):
        tensors |= {f"noise.{name}": value for name, value in optimizer.noise_state.items()}
    return tensors


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Give a fresh optimizer the state of another one for the same parameters."""
    parameters = _parameters(optimizer)
    noise_state = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        if index == "noise":
            noise_state[name] = value
            continue
        parameter = parameters[int(index)]
        moved = value.to(parameter.device)
        optimizer.state[parameter][name] = moved if name == "step" else shard_like(parameter, moved)
    if isinstance(optimizer, DPAdamBC):
        optimizer.load_noise_state(noise_state)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
