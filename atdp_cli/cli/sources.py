"""Where an option's value comes from: what the command line says goes before what a recipe file says."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Group = TypeVar("Group", bound=DataclassInstance)


def left_open(context: typer.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the values, by parameter, those of options that the command line leaves at their default."""
    return {name: value for name, value in values.items() if not _given(context, name)}


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def filled(group: "Group", values: Mapping[str, Any]) -> "Group":
    """A group of options with those of the values that belong to it."""
    return replace(group, **{field.name: values[field.name] for field in fields(group) if field.name in values})
