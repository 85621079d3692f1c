"""A stage's optimizer, made from its settings."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from atdp_cli.training import adambc
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.recipe import AdamBC, AdamW, Train


def make_optimizer(model: PreTrainedModel, stage: Train) -> torch.optim.Optimizer:
    """A fresh optimizer of what trains: nothing of an earlier stage's moments flows into this one.

    With weight decay towards the start, that is where the parameters are now.
    """
    settings, parameters = stage.optimizer, trainable(model)
    rate, decay = settings.learning_rate, settings.weight_decay
    own = decay if settings.towards == "zero" else 0.0
    optimizer: torch.optim.Optimizer
    if isinstance(settings, AdamBC):
        optimizer = adambc.AdamBC(parameters, learning_rate=rate, weight_decay=own, floor=settings.floor)
    elif isinstance(settings, AdamW):
        optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=own)
    else:
        optimizer = torch.optim.SGD(parameters, lr=rate, weight_decay=own)
    if own != decay:
        _pull_back(optimizer, parameters, rate * decay)
    return optimizer


def _pull_back(optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter], share: float) -> None:
    """Before each step, as AdamW's own decay: θ ← θ + share·(θ₀ − θ), where θ₀ is θ as it is now."""
    start = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def pull(*_: Any) -> None:
        for parameter, origin in zip(parameters, start, strict=True):
            parameter.lerp_(origin, share)

    optimizer.register_step_pre_hook(pull)
