"""Training some of a model's parameters: those whose name matches a pattern."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from torch import nn

from atdp_cli.errors import UsageError
from atdp_cli.files.regexes import Expression


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
