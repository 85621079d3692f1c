"""Speakers of plain text: which lines begin a message, and who speaks there."""

import re
from dataclasses import dataclass

from atdp_cli.errors import UsageError
from atdp_cli.files.regexes import Expression, compiled

EXAMPLE = "(?P<assistant>SYS|ACT): ?|(?P<user>USR): ?"


@dataclass(frozen=True, slots=True)
class Speakers:
    """Finds the label at a line's beginning; the named group that takes part in it is the role."""

    expression: Expression

    def at(self, line: str) -> tuple[str, int] | None:
        """The role and the length of the label that a line begins with; None where it goes on with a message.

        Raises:
            InputError: The expression takes too long.
        """
        match = next(self.expression.finditer(line), None)
        if match is None or match.lastgroup is None:
            return None
        return match.lastgroup, match.end()


def parse_speakers(pattern: str) -> Speakers:
    """A user's expression such as `EXAMPLE`.

    Raises:
        UsageError: It is no expression, or has no named group.
    """
    try:
        names = re.compile(pattern).groupindex
        expression = compiled(rf"\A(?:{pattern})", "The expression of --turns")
    except (re.error, RecursionError, OverflowError):
        names, expression = None, None
    if not names or expression is None:
        problem = "is no regular expression" if expression is None else "names no role"
        raise UsageError(f"--turns {problem}.", f"Name a role by a group, as in '{EXAMPLE}'.")
    return Speakers(expression)
