"""A model's trainable parameters: training some of them, those whose name matches a pattern; copies of them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.files.regexes import Expression
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.distributed.fsdp import local_shard, shard_like


def selected(model: nn.Module, layers: str) -> list[nn.Parameter]:
    """The trainable parameters that a stage's setting `layers` selects, in the model's order.

    A parameter that layers share has the first of its names, as in `named_parameters`.

    Args:
        layers: `all`, or a regular expression that is searched for in the names.

    Raises:
        UsageError: It matches no name.
    """
    pattern = Expression(layers, "The regular expression layers")
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    matching = [parameter for name, parameter in named.items() if layers == "all" or any(pattern.finditer(name))]
    if named and not matching:
        names = list(named)
        examples = dict.fromkeys((names[0], names[len(names) // 2], names[-1]))
        raise UsageError(
            f"layers = {layers} matches no trainable parameter's name.", f"Their names are like {', '.join(examples)}."
        )
    return matching


def training_only(model: nn.Module, layers: str) -> AbstractContextManager[None]:
    """While this lasts, no other parameter is trainable.

    Raises:
        UsageError: As `selected`.
    """
    kept = {id(parameter) for parameter in selected(model, layers)}
    others = [part for part in model.parameters() if part.requires_grad and id(part) not in kept]
    return frozen(others)


@contextmanager
def frozen(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """While this lasts, these trainable parameters take no gradient."""
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
    """While this lasts, the trainable parameters have these values; nothing is copied. Not for sharded ones."""
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
def restore(model: nn.Module, values: Sequence[torch.Tensor]) -> None:
    """Give the trainable parameters the values of `copies`, which may be whole where these are sharded."""
    for parameter, value in zip(trainable(model), values, strict=True):
        local_shard(parameter).copy_(local_shard(shard_like(parameter, value)))
