"""Checks of settings that lie out of range: one line each, naming the option."""

import math
from collections.abc import Sequence

from atdp_cli.errors import UsageError


def require_positive(name: str, value: float) -> None:
    """Refuse a number that is not finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} is {value}.", "Choose a number above 0.")


def require_at_least(name: str, value: float, least: int) -> None:
    """Refuse a number that is not finite and at least `least`."""
    if not (math.isfinite(value) and value >= least):
        raise UsageError(f"{name} is {value}.", f"Choose a number of at least {least}.")


def require_fraction(name: str, value: float) -> None:
    """Refuse a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise UsageError(f"{name} is {value}.", "Choose a number between 0 and 1.")


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        raise UsageError(f"{name} is {value}.", f"Choose one of {', '.join(choices)}.")
