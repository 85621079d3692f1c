"""The commands of `atdp`, each of which is imported when it is run: help and short commands wait for no other's."""

import ast
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from atdp_cli.cli.terminal.exit import exit_on_interrupt

_MODULES = {
    "harden": "harden.command",
    "detect": "detect",
    "review": "review",
    "redact": "redact",
    "decoy": "decoy",
    "plant-canary": "plant_canary",
    "audit-canary": "audit_canary.command",
    "audit-corpus": "audit_corpus.command",
    "account": "account.command",
    "report": "report.command",
}

COMMANDS = tuple(_MODULES)
"""Their names, in the order of help."""


def load_command(name: str) -> Callable[..., None]:
    """The function of a command, whose parameters are its groups of options."""
    command: Callable[..., None] = getattr(importlib.import_module(_module(name)), _function(name))
    return command


def make_command(name: str) -> TyperCommand:
    """A command as Typer runs it."""
    from atdp_cli.cli.options.generate import generate_options
    from atdp_cli.cli.options.help import HelpOptions, command_class, has_short_help

    command = load_command(name)
    more = (HelpOptions,) if has_short_help(command) else ()
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    alone.command(name, cls=command_class(command))(exit_on_interrupt(generate_options(command, *more)))
    return cast("TyperCommand", typer.main.get_command(alone))


class LazyGroup(TyperGroup):
    """The group of all commands. Until one is run it has only a name and, for the list in help, its docstring."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": {name: TyperCommand(name) for name in COMMANDS}})

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """What help and completion say of a command."""
        known = super().get_command(ctx, cmd_name)
        return None if known is None else TyperCommand(cmd_name, help=_docstring(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that these arguments run."""
        name, *rest = args
        return (name, make_command(name), rest) if name in _MODULES else super().resolve_command(ctx, args)


def _module(name: str) -> str:
    return f"{__package__}.{_MODULES[name]}"


def _function(name: str) -> str:
    return f"{name.replace('-', '_')}_command"


def _docstring(name: str) -> str | None:
    """The docstring of the command's function, read from its source: importing it takes a hundred times as long."""
    spec = find_spec(_module(name))
    if spec is None or spec.origin is None:
        return load_command(name).__doc__
    tree = ast.parse(Path(spec.origin).read_bytes())
    [function] = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _function(name))
    return ast.get_docstring(function)
