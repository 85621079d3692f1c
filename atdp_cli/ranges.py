"""Checks of settings that lie out of range: one line each, naming the option.

The upper bounds lie far above what anybody needs: a number beyond one is a slip, and would run for days, fill the
memory or leave the range of floats.
"""

import math
from collections.abc import Sequence

from atdp_cli.errors import UsageError

LARGEST_NOISE = 1e9
"""Of any noise multiplier that is asked for."""

LEAST_DELTA = 1e-100


def require_positive(name: str, value: float) -> None:
    """Refuse a number that is not finite and above 0."""
    if not (_finite(value) and value > 0):
        raise UsageError(f"{name} is {value}.", "Choose a number above 0.")


def require_at_least(name: str, value: float, least: int) -> None:
    """Refuse a number that is not finite and at least `least`."""
    if not (_finite(value) and value >= least):
        raise UsageError(f"{name} is {value}.", f"Choose a number of at least {least}.")


def require_at_most(name: str, value: float, most: float) -> None:
    """Refuse a number that is above `most`, or none."""
    if not value <= most:
        raise UsageError(f"{name} is {_shown(value)}.", f"Choose a number of at most {most:,}.")


def require_noise(name: str, value: float) -> None:
    """Refuse what is no noise multiplier: a number above 0 and at most `LARGEST_NOISE`."""
    require_positive(name, value)
    require_at_most(name, value, LARGEST_NOISE)


def require_delta(value: float) -> None:
    """Refuse a δ that is not below 1 and at least `LEAST_DELTA`."""
    require_fraction("delta", value)
    if value < LEAST_DELTA:
        raise UsageError(f"delta is {value}.", f"Choose a number of at least {LEAST_DELTA:g}.")


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)  # an integer may be too large for a float


def _shown(value: float) -> str:
    """The number, short also where it has thousands of digits."""
    short = isinstance(value, float) or abs(value) < 10**20
    return str(value) if short else f"a number of {len(str(abs(value)))} digits"


def require_fraction(name: str, value: float) -> None:
    """Refuse a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise UsageError(f"{name} is {value}.", "Choose a number between 0 and 1.")


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        raise UsageError(f"{name} is {value}.", f"Choose one of {', '.join(choices)}.")
