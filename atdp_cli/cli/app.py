"""The list of commands. Each command's module is imported when it runs, so help and short commands start fast."""

import ast
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from atdp_cli import __version__
from atdp_cli.cli.escape import ESCAPED
from atdp_cli.cli.exit import (
    INCOMPLETE,
    exit_on_interrupt,
    flush,
    misuse_line,
    unexpected_error,
    write_error,
    write_warning,
)
from atdp_cli.errors import AtdpError

COMMANDS = (
    "harden",
    "detect",
    "review",
    "redact",
    "decoy",
    "plant-canary",
    "audit-canary",
    "audit-corpus",
    "account",
    "report",
)
"""The names of the commands, in the order of help."""


def load_command(name: str) -> Callable[..., None]:
    """The function of a command, whose parameters are its groups of options."""
    command: Callable[..., None] = getattr(importlib.import_module(_module(name)), _function(name))
    return command


def make_command(name: str) -> TyperCommand:
    """A command as Typer runs it."""
    from atdp_cli.cli.generate import generate_options
    from atdp_cli.cli.help import HelpOptions, command_class, has_short_help

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
        """A command as help and completion show it."""
        known = super().get_command(ctx, cmd_name)
        return None if known is None else TyperCommand(cmd_name, help=_docstring(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that these arguments run."""
        name, *rest = args
        return (name, make_command(name), rest) if name in COMMANDS else super().resolve_command(ctx, args)


def _module(name: str) -> str:
    return f"{__package__}.{name.replace('-', '_')}"


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


app = typer.Typer(
    name="atdp",
    cls=LazyGroup,
    help="Harden language models against leaking their training data, and measure whether it worked.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atdp {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Harden language models against leaking their training data, and measure whether it worked."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if sys.stdout is None:  # `>&-`
        write_error("atdp: standard output is closed, so no result can be given; use >/dev/null if you want none.")
        return INCOMPLETE
    try:
        code = _run(arguments)
    except MemoryError:  # it was not enough to say what happened
        code = INCOMPLETE
    flush(sys.stderr)
    return code if flush(sys.stdout) else INCOMPLETE


def _run(arguments: list[str]) -> int:
    try:
        code = app(args=arguments, prog_name="atdp", standalone_mode=False)
    except SystemExit as end:
        # On a closed pipe Typer would end with 1, a failed audit.
        code = INCOMPLETE if isinstance(end.__context__, OSError) else end.code
    except typer.Abort:
        code = INCOMPLETE
    except typer.TyperException as misuse:
        if message := misuse_line(misuse):
            write_error(f"atdp: {message}")
        code = misuse.exit_code
    except AtdpError as error:
        write_error(f"atdp: {error}")
        code = error.exit_code
    except BaseException as error:
        code = unexpected_error(error)
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console entry."""
    # Threads that spin while they wait slow down whatever else runs on the machine many times over.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # numpy reads it, and fails where it is no number.
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPED)
    warnings.showwarning = write_warning  # type: ignore[assignment]
    sys.exit(run(sys.argv[1:]))
