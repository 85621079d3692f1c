"""Training some of a model's parameters: those in whose name a pattern is found."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from atdp_cli.errors import UsageError
from atdp_cli.files.regexes import Expression


def selected(model: nn.Module, layers: str) -> list[nn.Parameter]:
    """The trainable parameters that `layers` of a stage means, in the model's order.

    A parameter that layers share is known by the first of its names, as `named_parameters` has it.

    Args:
        layers: `all`, or a regular expression.

    Raises:
        UsageError: It is found in no name.
    """
    wanted = Expression(layers, "The regular expression layers")
    named = {name: one for name, one in model.named_parameters() if one.requires_grad}
    found = [one for name, one in named.items() if layers == "all" or any(wanted.finditer(name))]
    if named and not found:
        names = list(named)
        some = dict.fromkeys((names[0], names[len(names) // 2], names[-1]))
        raise UsageError(
            f"layers = {layers} is found in no trainable parameter's name.", f"Their names are like {', '.join(some)}."
        )
    return found


@contextmanager
def training_only(model: nn.Module, layers: str) -> Iterator[None]:
    """While this lasts, no other parameter is trainable.

    Raises:
        UsageError: As `selected`.
    """
    kept = {id(one) for one in selected(model, layers)}
    others = [one for one in model.parameters() if one.requires_grad and id(one) not in kept]
    for parameter in others:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_(True)
