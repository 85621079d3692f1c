"""The command line as a report tells it: as it was given, and without what could name a file or quote a text."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import typer

PUBLIC_TEXT = frozenset(
    {"set_", "target_share", "weight", "max_increase", "microbatch", "dtype", "jitter", "recipe", "unit"}
)
"""Options of free text whose values the report has among its stages and its unit, or that are plain settings."""

FILE = ".toml"
"""How a recipe ends that is a file."""


def full_command(context: typer.Context) -> tuple[str, ...]:
    """The command with all that the user gave, quoted for a shell."""
    return tuple(_words(context, lambda _, value: shlex.quote(_text(value))))


def without_paths(context: typer.Context) -> tuple[str, ...]:
    """The same with the option's name in capitals for every value that is no number and no choice of the tool's."""
    return tuple(_words(context, _masked))


def _masked(name: str, value: Any) -> str:
    harmless = isinstance(value, bool | int | float | Enum) or name in PUBLIC_TEXT
    return _text(value) if harmless and not _text(value).endswith(FILE) else name.strip("_").upper()


def _words(context: typer.Context, spelt: Callable[[str, Any], str]) -> Iterator[str]:
    """Command, arguments and given options, in the order in which the command declares them."""
    yield "atdp"
    yield str(context.info_name)
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name in ("DEFAULT", "DEFAULT_MAP"):
            continue
        value = context.params[name]
        for one in value if isinstance(value, list | tuple) else (value,):
            if parameter.param_type_name != "argument":
                yield max(parameter.opts, key=len)
            if not isinstance(one, bool):
                yield spelt(name, one)


def _text(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Group = TypeVar("Group", bound=DataclassInstance)


def not_given(context: typer.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the values, by parameter, those of options that the command line leaves at their default."""
    return {name: value for name, value in values.items() if not _given(context, name)}


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def fill_defaults(group: "Group", values: Mapping[str, Any]) -> "Group":
    """A group of options with those of the values that belong to it."""
    return replace(group, **{field.name: values[field.name] for field in fields(group) if field.name in values})
