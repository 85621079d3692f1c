"""Noise multipliers over a stage's epochs, drawn in full before training starts."""

import random
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.settings import LARGEST_NOISE, contradiction, validated

NoiseMultiplier = Annotated[float, Field(gt=0, le=LARGEST_NOISE)]
"""σ: the noise's standard deviation over what one record can change."""

SigmaGrowth = Annotated[float, Field(ge=1)]

SigmaMax = Annotated[float, Field(le=4 * LARGEST_NOISE)]


@validated
class Constant:
    """The same noise multiplier in every epoch."""

    kind: Literal["constant"] = "constant"
    noise_multiplier: NoiseMultiplier


@validated
class RiseReset:
    """The paper's Algorithm 1: σ ← σ·γ·ρ after each epoch; above the ceiling, back to σ₀.

    Attributes:
        noise_multiplier: σ₀ > 0, the first epoch's noise over the clip norm.
        sigma_growth: γ ≥ 1.
        jitter: The range (low, high) from which ρ is drawn uniformly; 0 < low ≤ high.
        sigma_max: The ceiling ≥ σ₀; None means 4·σ₀.
    """

    kind: Literal["rise-reset"] = "rise-reset"
    noise_multiplier: NoiseMultiplier
    sigma_growth: SigmaGrowth = 1.2
    jitter: tuple[float, float] = (0.9, 1.1)
    sigma_max: SigmaMax | None = None

    def __post_init__(self) -> None:
        low, high = self.jitter
        if not 0 < low <= high:
            raise contradiction(f"jitter is {low},{high}.", "Give two numbers, LOW,HIGH, with 0 < LOW ≤ HIGH.")
        if self.ceiling < self.noise_multiplier:
            raise contradiction(
                f"sigma-max is {self.sigma_max}, below the noise multiplier {self.noise_multiplier}.",
                "Raise sigma-max or lower the noise multiplier.",
            )

    @property
    def ceiling(self) -> float:
        """σ_max: above it, σ returns to σ₀."""
        return 4 * self.noise_multiplier if self.sigma_max is None else self.sigma_max


Schedule = Annotated[Constant | RiseReset, Field(discriminator="kind")]


def sigma_sequence(schedule: Schedule, epochs: int, *, position: int, jitter_seed: int = 0) -> tuple[float, ...]:
    """One noise multiplier an epoch, shape [epochs].

    The jitter comes from a public stream keyed by `jitter_seed` and the stage's `position` in the recipe, so
    a plan, its dry run and the run agree to the last digit, and the accountant sees the values that are used.

    >>> sigma_sequence(RiseReset(noise_multiplier=1.0, sigma_growth=2.0, jitter=(1, 1)), 5, position=0)
    (1.0, 2.0, 4.0, 1.0, 2.0)
    """
    if isinstance(schedule, Constant):
        return (schedule.noise_multiplier,) * epochs
    stream = random.Random(f"atdp jitter {jitter_seed} {position}")  # noqa: S311 - public by design
    sigmas = [schedule.noise_multiplier]
    while len(sigmas) < epochs:
        risen = sigmas[-1] * schedule.sigma_growth * stream.uniform(*schedule.jitter)
        sigmas.append(schedule.noise_multiplier if risen > schedule.ceiling else risen)
    return tuple(sigmas[:epochs])


def scaled(schedule: Schedule, noise_multiplier: float) -> Schedule:
    """The same shape started at another σ₀: the ceiling is scaled along.

    With a fixed ceiling ε would not be monotone in σ₀, since a larger σ₀ can reset one epoch earlier.
    """
    if isinstance(schedule, Constant) or schedule.sigma_max is None:
        return replace(schedule, noise_multiplier=noise_multiplier)
    ceiling = schedule.sigma_max / schedule.noise_multiplier * noise_multiplier
    return replace(schedule, noise_multiplier=noise_multiplier, sigma_max=max(ceiling, noise_multiplier))
