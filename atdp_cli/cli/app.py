"""The `atdp` command, and how it ends."""

import os
import sys
import warnings
from typing import Annotated

import typer

from atdp_cli import __version__
from atdp_cli.cli.commands import LazyGroup
from atdp_cli.cli.terminal.exit import (
    INCOMPLETE,
    flush,
    unexpected_error,
    write_error,
    write_warning,
)
from atdp_cli.cli.terminal.misuse import misuse_line
from atdp_cli.errors import AtdpError

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
    warnings.showwarning = write_warning  # type: ignore[assignment]
    sys.exit(run(sys.argv[1:]))
