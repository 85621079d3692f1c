"""Every error the tool raises on purpose. Each knows its exit code and says what to do next."""

from typing import ClassVar, Self


class AtdpError(Exception):
    """An expected failure: one plain line for the user, never a traceback.

    Args:
        problem: What is wrong and where. Never quotes a record's text.
        remedy: What the user can do about it.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        """As another process is sent it."""
        return type(self), (self.problem, self.remedy)


class UsageError(AtdpError):
    """Options contradict each other or lie out of range."""

    exit_code = 2


class InputError(AtdpError):
    """A file or folder is missing, unreadable or malformed."""

    exit_code = 2


class BudgetError(AtdpError):
    """The plan cannot meet the asked-for ε, or would exceed the allowed one."""

    exit_code = 2


class RunError(AtdpError):
    """The work was started and could not be completed."""

    exit_code = 3
