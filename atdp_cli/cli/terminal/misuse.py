"""What Typer finds wrong with a command line, as one line."""

import re

import typer

from atdp_cli.errors import did_you_mean

_CHOICE = re.compile(r": '([^']*)' is not one of (.*)")

_PLAIN = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer, .*"), "It takes a whole number."),
    (re.compile(r"Input should be a valid number, .*"), "It takes a number."),
)
"""What Typer passes on of pydantic's words, and what a user can read."""


def misuse_line(misuse: typer.TyperException) -> str:
    """What is wrong, what was perhaps meant, and where help is; nothing where Typer has shown the help already."""
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
    if choice := _CHOICE.search(message):
        hint = did_you_mean(choice[1], re.findall(r"'([^']+)'", choice[2]))
        return f"{message.rstrip('.')}. {hint}" if hint else message
    return message
