"""Help that fits a screen: `--help` shows the main options of a long command, `--help-all` all. Shared options."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from atdp_cli.cli.console import stderr_console
from atdp_cli.cli.generate import Eager, command_groups
from atdp_cli.cli.json_lines import ProgressOption
from atdp_cli.errors import UsageError
from atdp_cli.settings import OUTPUT, Option, Options, declared

MOST = 15
"""The most options of a command that `--help` shows in full."""

_ALL = "--help-all"


def _show_all(context: typer.Context, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    context.meta[_ALL] = True
    typer.echo(context.get_help(), color=context.color)
    raise typer.Exit


class HelpOptions(Options):
    """The option of a command whose `--help` is short."""

    help_all: Annotated[bool, Option(main=True), Eager(_show_all)] = False
    """Show all options and exit."""


def has_short_help(command: Callable[..., None]) -> bool:
    """Whether a command has so many options that `--help` shows the main ones only."""
    return len(_options(command)) > MOST


def command_class(command: Callable[..., None]) -> type[TyperCommand]:
    """The Typer class of a command whose parameters are groups of options: a class, since Typer asks that for help."""
    if not has_short_help(command):
        return TyperCommand

    class ShortHelpCommand(TyperCommand):
        """A command whose `--help` leaves out what is not main, and says so in its last line."""

        def format_help(self, ctx: Any, formatter: Any) -> None:
            """The help, whole where `--help-all` asked for it."""
            if _ALL in ctx.meta:
                super().format_help(ctx, formatter)
                return
            with _main_only(self, _others(command, self.name)):
                super().format_help(ctx, formatter)

    return ShortHelpCommand


def _options(command: Callable[..., None]) -> dict[str, Option]:
    return {name: option for group in command_groups(command) for name, _, option in declared(group) if option.flag}


def _others(command: Callable[..., None], name: str | None) -> frozenset[str]:
    """The options that `--help` leaves out."""
    options = _options(command).items()
    return frozenset(each for each, option in options if not (option.main is True or name in (option.main or ())))


@contextmanager
def _main_only(command: Any, more: frozenset[str]) -> Iterator[None]:
    """Show only the main options in a command's help, under one heading, and count the others, while the block runs."""
    before = [(each, each.hidden, each.rich_help_panel) for each in command.params]
    for each in command.params:
        each.hidden, each.rich_help_panel = each.name in more, None
    command.epilog = f"{len(more)} more options: atdp {command.name} {_ALL}"
    try:
        yield
    finally:
        command.epilog = None
        for each, hidden, panel in before:
            each.hidden, each.rich_help_panel = hidden, panel


class JsonOptions(Options):
    """The option of a command that can print JSON."""

    as_json: Annotated[bool, Option(OUTPUT, main=True, flags=("--json",), fingerprint=False)] = False
    """Print the result as JSON on standard output."""


class OutputOptions(JsonOptions):
    """The options for what a command prints."""

    quiet: Annotated[bool, Option(OUTPUT, flags=("--quiet", "-q"), fingerprint=False)] = False
    """Print nothing but errors on standard error."""


class ProgressOptions(OutputOptions):
    """The options for what a command prints, with its progress."""

    progress: Annotated[ProgressOption, Option(flag=False, fingerprint=False, public=True)] = ProgressOption.AUTO
    """auto: bars on a terminal, else lines. json: each event as a line of JSON on standard error, and nothing else
    there but errors. As the screen, the events of harden tell perplexities of held-out text."""

    def console(self) -> Console:
        """The console for people; a silent one where standard error is a machine's.

        Raises:
            UsageError: The events were asked for, and silence too.
        """
        as_events = self.progress is ProgressOption.JSON
        if as_events and self.quiet:
            raise UsageError("--quiet silences what run.progress=json writes.", "Leave one of them out.")
        return stderr_console(quiet=self.quiet or as_events)
