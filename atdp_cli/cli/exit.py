"""Exit codes, error messages and signals. 0 and 1 are verdicts, so no accident may end with either of them."""

import errno
import functools
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, TextIO

import typer

from atdp_cli.cli.escape import escaped
from atdp_cli.errors import AtdpError, InputError, did_you_mean, require_package

INTERRUPTED = 130

INCOMPLETE = 3

UNUSABLE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM)
"""The system's errors about a path that the user gave, not about the work."""

READ_MODELS = ("torch", "transformers", "peft", "opacus", "tokenizers")
"""Packages of the extra `torch`."""

LONGEST_NAME = 100
"""The most characters of a path in a message."""


def exit_on_interrupt(command: Callable[..., None]) -> Callable[..., None]:
    """End a command whatever is raised in it: Typer alone would end an interrupt or a closed pipe with 1.

    A library that calls `sys.exit` has given no verdict either, and a panic of one in Rust is no `Exception`.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, AtdpError):
            raise
        except OSError as error:
            if error.errno in UNUSABLE:
                raise unusable_path(error) from error
            raise typer.Exit(unexpected_error(error)) from None
        except BaseException as error:
            if isinstance(error, ModuleNotFoundError) and error.name in READ_MODELS:
                require_package("This", error.name, "torch")
            raise typer.Exit(unexpected_error(error)) from None

    return run


def unusable_path(error: OSError) -> InputError:
    """The message about a path that the user gave and the system cannot use."""
    name = str(error.filename or "A path")
    shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return InputError(f"{shown} cannot be used ({error.strerror}).", "Check the path and its permissions.")


def unexpected_error(error: BaseException) -> int:
    """Print an unexpected error without a library's message, which might quote a record; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        write_error("atdp: interrupted.")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError | EOFError):
        return INCOMPLETE
    write_error(
        f"atdp: unexpected {type(error).__name__} at {_place(error)}: the command did not finish. Please report it; "
        "ATDP_TRACEBACK=1 shows the details, which may quote your data."
    )
    if os.environ.get("ATDP_TRACEBACK") == "1":
        for line in "".join(traceback.format_exception(error)).splitlines():
            write_error(line)
    return INCOMPLETE


def _place(error: BaseException) -> str:
    """The file and the line where it was raised. Reads no source, for which memory may be short."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return "an unknown place"
    name = last.tb_frame.f_code.co_filename
    return f"{os.path.basename(name)}:{last.tb_lineno}"  # noqa: PTH119 - a frame's name need not be a path


def write_error(line: str) -> None:
    """Write a line to standard error, escaped; nothing if that is closed."""
    write_safe(escaped(line))


def write_warning(message: Warning | str, category: type[Warning], *_where: object) -> None:
    """Write what a library warns of as a line, escaped; it takes `warnings.showwarning`'s place."""
    write_error(f"{category.__name__}: {message}")


def write_safe(line: str) -> None:
    """Write an escaped line to standard error; nothing if that is closed."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def flush(stream: TextIO) -> bool:
    """Whether what was written on a stream has arrived; where it has not, Python must not try again at its exit."""
    try:
        stream.flush()
    except OSError:
        drop(stream)
        return False
    return True


def drop(stream: TextIO) -> None:
    """Discard what is still to be written on a stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_NO_COMMAND = re.compile(r"No such command '([^']*)'\.")

_CHOICE = re.compile(r": '([^']*)' is not one of (.*)")

_PLAIN = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer, .*"), "It takes a whole number."),
    (re.compile(r"Input should be a valid number, .*"), "It takes a number."),
)
"""Pydantic's words that Typer passes on, and plain ones for them."""


def misuse_line(misuse: typer.TyperException) -> str:
    """The message about a wrong command line, a suggestion, and where help is; empty if Typer has shown the help."""
    message = " ".join(misuse.format_message().split())
    if not message:
        return ""
    for pattern, plain in _PLAIN:
        message = pattern.sub(plain, message)
    context: typer.Context | None = getattr(misuse, "ctx", None)
    where = "atdp" if context is None else context.command_path
    message = _with_hint(misuse, message)
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See {where} --help."


def _with_hint(misuse: typer.TyperException, message: str) -> str:
    """The message with the options or choices that are most like what was given."""
    if possible := getattr(misuse, "possibilities", None):
        return f"No such option: {getattr(misuse, 'option_name', '')}. Did you mean {' or '.join(possible)}?"
    if command := _NO_COMMAND.fullmatch(message):  # Typer proposes what is like it, and not what begins so
        hint = did_you_mean(command[1], getattr(misuse.ctx.command, "commands", ()))  # type: ignore[attr-defined]
        return f"{message} {hint}".rstrip()
    if choice := _CHOICE.search(message):
        hint = did_you_mean(choice[1], re.findall(r"'([^']+)'", choice[2]))
        return f"{message.rstrip('.')}. {hint}" if hint else message
    return message


STOPS = (signal.SIGINT, signal.SIGTERM)

STOPPING = b"\natdp: stopping after this step; once more to stop at once.\n"


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, with its cleanup, while the block runs."""
    with _handled({signal.SIGTERM: signal.default_int_handler}):
        yield


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first signal request a stop, and the second stop at once, while the block runs."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if heard:
            signal.default_int_handler(number, frame)
        heard.append(number)
        # What the main thread was printing when the signal came must not be entered a second time.
        os.write(2, STOPPING)

    with _handled(dict.fromkeys(STOPS, hear)):
        yield lambda: bool(heard)


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    """Give the signals these handlers while the block runs; an ignored signal stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may say what signals do.
        return
    before = {number: signal.getsignal(number) for number in handlers}
    try:
        for number, handler in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
