"""The command line as a report shows it: as it was given, and without what could name a file or quote a text."""

import shlex
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import typer

from atdp_cli.cli.options.generate import is_given
from atdp_cli.options import Options, declared

FILE = ".toml"
"""How a recipe ends that is a file."""


def full_command(context: typer.Context) -> tuple[str, ...]:
    """The command with all that the user gave, quoted for a shell."""
    return tuple(_words(context, lambda _, value: shlex.quote(_text(value))))


def without_paths(context: typer.Context, options: type[Options]) -> tuple[str, ...]:
    """The same with the option's name in capitals for every value that is no number, no choice and not public."""
    public = {name for name, _, option in declared(options) if option.public}
    choices = {str(each.name) for each in context.command.params if hasattr(getattr(each, "type", None), "choices")}

    def masked(name: str, value: Any) -> str:
        harmless = isinstance(value, bool | int | float) or name in public | choices
        return _text(value) if harmless and not _text(value).endswith(FILE) else name.strip("_").upper()

    return tuple(_words(context, masked))


def _words(context: typer.Context, spelt: Callable[[str, Any], str]) -> Iterator[str]:
    """Command, arguments and given options, in the order in which the command declares them."""
    yield "atdp"
    yield str(context.info_name)
    for parameter in context.command.params:
        name = str(parameter.name)
        if not is_given(context, name):
            continue
        values = context.params[name]
        for value in values if isinstance(values, list | tuple) else (values,):
            if parameter.param_type_name != "argument":
                yield max(parameter.opts, key=len)
            if not isinstance(value, bool):
                yield spelt(name, value)


def _text(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
