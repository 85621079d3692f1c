"""The errors that the tool raises on purpose. Each has an exit code and says what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from typing import ClassVar, Self

LONGEST, LONGEST_REMEDY = 500, 4000
"""The most characters of a problem, and of a remedy, which may hold a command; before escaping."""


def plain_line(text: str, longest: int = LONGEST) -> str:
    """The text as one line that is safe on a terminal: keys and names in a message come from files of others."""
    line = text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 :]}"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`Did you mean atdp?`, with up to three known words that are most like this one, or begin so; empty if none is."""
    names = list(known)
    near = get_close_matches(word, names, n=3) or [name for name in names if word and name.startswith(word)][:3]
    return f"Did you mean {' or '.join(near)}?" if near else ""


class AtdpError(Exception):
    """An expected failure: one plain line for the user, never a traceback.

    Args:
        problem: What is wrong and where. Never quotes a record's text. What cannot be printed is escaped, and a long
            problem is cut in the middle; so is the remedy.
        remedy: What the user can do about it.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = plain_line(problem)
        self.remedy = plain_line(remedy, LONGEST_REMEDY)
        super().__init__(f"{self.problem} {self.remedy}")

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        """The form in which another process is sent it."""
        return type(self), (self.problem, self.remedy)


class UsageError(AtdpError):
    """Options contradict each other or lie out of range."""

    exit_code = 2


def require_package(what: str, package: str, extra: str) -> None:
    """Raise UsageError unless a package that comes with an extra of atdp is installed."""
    spec = find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:  # a folder of that name is no package
        raise UsageError(
            f"{what} needs the package {package}, which is not installed.",
            f"Install the extra: pip install 'atdp[{extra}]'.",
        )


class InputError(AtdpError):
    """A file or folder is missing, unreadable or malformed."""

    exit_code = 2


class BudgetError(AtdpError):
    """The plan cannot meet the asked-for ε, or would exceed the allowed one."""

    exit_code = 2


class RunError(AtdpError):
    """The work was started and could not be completed."""

    exit_code = 3


class DivergedError(RunError):
    """Training left the finite numbers: the same again would end the same."""


class ConformanceError(RunError):
    """A run used something else than its journal says: the same again would end the same."""


class LostRankError(RunError):
    """One of several processes that train together is gone."""


class InterruptedRunError(AtdpError):
    """Somebody asked the run to stop, and it did."""

    exit_code = 130
