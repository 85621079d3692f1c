"""The `atdp` command: which commands there are, and how they end."""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from atdp_cli import __version__
from atdp_cli.cli import account, audit_canary, detect, harden, plant_canary, redact, review
from atdp_cli.cli.groups import expanded
from atdp_cli.errors import AtdpError

INTERRUPTED = 130
INCOMPLETE = 3

app = typer.Typer(
    name="atdp",
    help="Harden language models against leaking their training data, and measure whether it worked.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command with 130 and a closed pipe with 3; Typer alone would end both with 1, a failed audit."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            print("atdp: interrupted.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except (BrokenPipeError, EOFError):
            raise typer.Exit(INCOMPLETE) from None

    return run


COMMANDS: dict[str, Callable[..., None]] = {
    "harden": harden.harden,
    "detect": detect.detect,
    "review": review.review,
    "redact": redact.redact,
    "plant-canary": plant_canary.plant_canary,
    "audit-canary": audit_canary.audit_canary,
    "account": account.account,
}
for name, command in COMMANDS.items():
    app.command(name)(interruptible(expanded(command)))


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
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INCOMPLETE
    return code


def _run(arguments: list[str]) -> int:
    try:
        app(args=arguments, prog_name="atdp")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except AtdpError as error:
        print(f"atdp: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        return _unexpected(error)
    return 0


def main() -> None:
    """The console entry."""
    # Threads that spin while they wait slow down whatever else runs on the machine many times over.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(run(sys.argv[1:]))


def _unexpected(error: Exception) -> int:
    """A defect of ours: exit 3, never 1, and no message of a library, which might quote a record."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - a frame's name need not be a path
    print(
        f"atdp: unexpected {type(error).__name__} at {where}: the command did not finish. Please report it; "
        "ATDP_TRACEBACK=1 shows the details, which may quote your data.",
        file=sys.stderr,
    )
    if os.environ.get("ATDP_TRACEBACK") == "1":
        traceback.print_exception(error)
    return INCOMPLETE
