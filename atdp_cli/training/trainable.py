"""A model's trainable parameters: freezing, copying, restoring, interpolating."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.parallel.fsdp import local_shard, shard_like


@contextmanager
def frozen(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Keep these trainable parameters without a gradient while the block runs."""
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def copies(model: nn.Module) -> tuple[torch.Tensor, ...]:
    """The values of the trainable parameters as they are now, sharded as they are."""
    return tuple(parameter.detach().clone() for parameter in trainable(model))


@contextmanager
def holding(model: nn.Module, values: Sequence[torch.Tensor]) -> Iterator[None]:
    """Give the trainable parameters these values while the block runs; nothing is copied. Not for sharded ones."""
    parameters = trainable(model)
    own = [parameter.data for parameter in parameters]
    _exchange(parameters, values)
    try:
        yield
    finally:
        _exchange(parameters, own)


@contextmanager
def at_start(model: PreTrainedModel, start: Sequence[torch.Tensor]) -> Iterator[None]:
    """The model with the parameters that it had at the start of its stage, without dropout."""
    training = model.training
    model.eval()
    try:
        with holding(model, start):
            yield
    finally:
        model.train(training)


def _exchange(parameters: Sequence[nn.Parameter], values: Sequence[torch.Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.data = value


@torch.no_grad()
def interpolate(model: nn.Module, reference: nn.Module, beta: float) -> None:
    """θ ← θ_ref + β(θ − θ_ref), in place; both models have parameters of the same names and shapes."""
    origins = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        origin = origins[name].to(device=parameter.device, dtype=parameter.dtype)
        shard = local_shard(parameter)
        shard.copy_(torch.lerp(local_shard(shard_like(parameter, origin)), shard, beta))


@torch.no_grad()
def restore(model: nn.Module, values: Sequence[torch.Tensor]) -> None:
    """Give the trainable parameters the values of `copies`, which may be whole where these are sharded."""
    for parameter, value in zip(trainable(model), values, strict=True):
        local_shard(parameter).copy_(local_shard(shard_like(parameter, value)))
