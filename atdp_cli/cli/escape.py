"""Escaping of everything that is printed, since it comes from files, their names and users."""

import codecs
import re

_COMMAND = re.compile(r"##(?=vso\[|\[)|::(?=[A-Za-z])")
"""What a CI may take for a command of its own: GitHub `::error::` and `##[error]`, Azure `##vso[…]`. It is looked for
anywhere in a text, since a terminal's width may put any part of it at the start of a line."""

_SECOND = {"##": "#\\x23", "::": ":\\x3a"}

_JOINERS = "\u200c\u200d"
"""Parts of letters in some scripts, and harmless."""


def escaped(text: str) -> str:
    """The text as one line that does nothing on a terminal or in a CI's log.

    What cannot be printed becomes visible: a line feed `\\n`, an escape `\\x1b`, a mark that turns the text's direction
    `\\u202e`. A text that is escaped already stays as it is.
    """
    shown = escaped_marks(text) if not text.isprintable() else text
    return _COMMAND.sub(lambda match: _SECOND[match[0]], shown)


def escaped_marks(text: str) -> str:
    """The text with all that cannot be printed made visible."""
    return "".join(
        mark if mark.isprintable() or mark in _JOINERS else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )


def escaped_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_json(text: str) -> str:
    """A JSON document, or a piece of one with whole strings, whose values are the same and harmless on a screen."""
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() or mark in _JOINERS or mark == "\n" else _json(mark) for mark in text)
    return text.replace("##", "#\\u0023") if "##" in text else text


def _json(mark: str) -> str:
    units = mark.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


ESCAPED = "atdp-escaped"
"""An error handler: what an encoding lacks is written as JSON's escapes, which stay valid within a JSON document."""


def _encodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_json, error.object[error.start : error.end])), error.end


codecs.register_error(ESCAPED, _encodable)
