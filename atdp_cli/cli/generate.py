"""The command-line options of a command, generated from the pydantic models that declare them."""

import functools
import inspect
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo
from typer.core import HAS_RICH

from atdp_cli.errors import UsageError, did_you_mean
from atdp_cli.settings import RUN, Option, Options, RunSettings, declared, flags


@dataclass(frozen=True)
class Eager:
    """Marks an option that is handled before all others, as `--list-recipes`.

    Attributes:
        callback: Does it, and ends the command.
    """

    callback: Callable[[typer.Context, bool], None]


def generate_options(command: Callable[..., None], *eager: type[Options]) -> Callable[..., None]:
    """The command with each parameter whose type is a group of options replaced by those options.

    Those without a flag are given by `--set run.KEY=VALUE`. Typer reads the new signature; the command still gets the
    groups, in which `model_fields_set` are the options that the command line has. Parameters are keyword-only, so their
    order is free.

    Args:
        eager: Groups of options that the command has beside its own, each handled before it is called.
    """
    groups = option_groups(command)
    parameters: dict[str, inspect.Parameter] = {}
    for parameter in inspect.signature(command).parameters.values():
        if (group := groups.get(parameter.name)) is None:
            parameters[parameter.name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        else:
            parameters |= {
                name: _parameter(name, field, option) for name, field, option in declared(group) if option.flag
            }
    unflagged = {each for group in groups.values() for each, _, option in declared(group) if not option.flag}
    more = command_groups(command)[len(groups) :]
    handled = {name: _parameter(name, field, option) for name, field, option in declared(*eager, *more)}
    parameters |= handled
    own = {name for name in inspect.signature(command).parameters if name not in groups}
    takes_context = "context" in parameters
    parameters["context"] = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        settings, others = run_settings(values.get("set_") or (), unflagged)
        if others and "set_" in handled:
            raise UsageError(f"--set {others[0]} is not understood.", f"Write --set {RUN}KEY=VALUE.")
        given = {name: value for name, value in values.items() if name not in handled and is_given(context, name)}
        if "set_" in given:
            given["set_"] = others
        given |= settings
        values = {name: value for name, value in values.items() if name in own}
        for name, group in groups.items():
            values[name] = group(**{field: given[field] for field, _, _ in declared(group) if field in given})
        command(**values | ({"context": context} if takes_context else {}))

    # Typer looks at both; without __wrapped__ neither leads back to the groups.
    del run.__wrapped__
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return run


def option_groups(command: Callable[..., None]) -> dict[str, type[Options]]:
    """The parameters of a command that are groups of options."""
    parameters = inspect.signature(command).parameters.values()
    return {
        each.name: each.annotation
        for each in parameters
        if isinstance(each.annotation, type) and issubclass(each.annotation, Options)
    }


def command_groups(command: Callable[..., None]) -> tuple[type[Options], ...]:
    """The groups of options, and `RunSettings` for a command with settings without a flag and no `--set` of its own."""
    groups = tuple(option_groups(command).values())
    options = [(name, option.flag) for group in groups for name, _, option in declared(group)]
    needed = not all(flag for _, flag in options) and "set_" not in dict(options)
    return (*groups, RunSettings) if needed else groups


def run_settings(texts: Iterable[str], keys: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The values of `--set run.KEY=VALUE` by field, and the texts that are about something else.

    Raises:
        UsageError: None of the fields has that key.
    """
    settings, others = {}, []
    for text in texts:
        key, equals, value = text.partition("=")
        if not key.startswith(RUN):
            others.append(text)
            continue
        name = key.removeprefix(RUN).replace("-", "_")
        if name not in keys or not equals:
            known = sorted(each.replace("_", "-") for each in keys)
            near = did_you_mean(name.replace("_", "-"), known) or f"Choose one of {', '.join(known)}."
            problem = "is no setting without a flag" if equals else "has no value"
            raise UsageError(f"--set {key} {problem}.", near if equals else f"Write --set {RUN}KEY=VALUE.")
        settings[name] = value
    return settings, others


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line has this option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _parameter(name: str, field: FieldInfo, option: Option) -> inspect.Parameter:
    if option.argument:
        argument = typer.Argument(metavar=option.metavar, help=" ".join((field.description or "").split()))
        kind: Any = Annotated[_kind(field), argument]
        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        return parameter if field.is_required() else parameter.replace(default=None)
    callback = next((part.callback for part in field.metadata if isinstance(part, Eager)), None)
    typed = typer.Option(
        *flags(name, option),
        help=_without_markup(" ".join((field.description or "").split())),
        autocompletion=None if option.words is None else _completion(option.words, option.joined),
        metavar=option.metavar,
        rich_help_panel=option.panel,
        callback=callback,
        is_eager=callback is not None,
    )
    default = None if field.default == () else option.shown or field.default
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.is_required() else default,
        annotation=Annotated[_kind(field), typed],
    )


def _without_markup(text: str) -> str:
    """The text for Typer, which reads [ray] as markup where it prints help by Rich."""
    if not HAS_RICH:
        return text
    from rich.markup import escape

    return escape(text)


def _completion(words: Callable[[], Iterable[str]], joined: str | None) -> Callable[[str], list[str]]:
    """The completion of a value: the words that begin like it, or like the last of several that are joined."""

    def complete(incomplete: str) -> list[str]:
        before, mark, last = ("", "", incomplete) if joined is None else incomplete.rpartition(joined)
        return [f"{before}{mark}{word}" for word in words() if word.startswith(last)]

    return complete


def _kind(field: FieldInfo) -> Any:
    """The type by which Typer reads the option: text where the model reads it itself, a list for a tuple."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    is_union = get_origin(field.annotation) in (Union, UnionType)
    kind: Any = kinds[0] if is_union and len(kinds) == 1 else field.annotation
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if (is_union and len(kinds) > 1) or any(isinstance(part, BeforeValidator) for part in field.metadata):
        kind = str
    elif get_origin(kind) is tuple:
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    return kind | None if field.default in (None, ()) else kind


FILE = ".toml"
"""The suffix of a recipe that is a file."""


def full_command(context: typer.Context) -> tuple[str, ...]:
    """The command with all that the user gave, quoted for a shell."""
    return tuple(_words(context, lambda _, value: shlex.quote(_text(value))))


def without_paths(context: typer.Context, *options: type[Options]) -> tuple[str, ...]:
    """The command with the option's name in capitals for every value that is no number, no choice and not public."""
    public = {name for name, _, option in declared(*options) if option.public}
    choices = {str(each.name) for each in context.command.params if hasattr(getattr(each, "type", None), "choices")}

    def masked(name: str, value: Any) -> str:
        if name == "set_" and value.startswith(RUN):
            key, _, text = value.partition("=")
            field = key.removeprefix(RUN).replace("-", "_")
            return f"{key}={text if field in public or _is_plain(text) else field.upper()}"
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


def _is_plain(text: str) -> bool:
    """Whether a text is a number or a truth value."""
    try:
        return text.lower() in ("true", "false") or math.isfinite(float(text))
    except ValueError:
        return False


def _text(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
