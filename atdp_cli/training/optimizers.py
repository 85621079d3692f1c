"""A stage's optimizer: made from its settings, saved and restored."""

from collections.abc import Mapping

import torch
from torch import nn

from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.parallel.fsdp import shard_like
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
