"""Statistical checks of the noise and of the sample sizes of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

FALSE_ALARM = 1e-13
"""The probability that a sound run is found to break a law, all of its checks together."""


@dataclass(frozen=True, kw_only=True)
class NoiseTest:
    """A figure that was measured, beside what its law has it be.

    Attributes:
        where: The stage, and the step or release.
        what: The figure.
        p: How probable it is that the figure is at least that far from what was planned, on either side.
    """

    where: str
    what: str
    planned: float
    used: float
    p: float


def noise_test(where: str, *, squares: float, coordinates: int, standard_deviation: float) -> NoiseTest:
    """Whether noise is as long as `coordinates` normals of this standard deviation: Σz²/σ² is χ²-distributed.

    For a discrete Gaussian on a fine grid it is so up to the grid's width over σ, squared.

    Args:
        squares: Σ of the squares of the noise.
    """
    from scipy.special import gammainc, gammaincc

    half, reached = coordinates / 2, squares / standard_deviation**2 / 2
    tail = float(min(gammainc(half, reached), gammaincc(half, reached))) if coordinates else 1.0
    return NoiseTest(
        where=where,
        what="the noise's root mean square",
        planned=standard_deviation,
        used=(squares / max(coordinates, 1)) ** 0.5,
        p=min(1.0, 2 * tail),
    )


def sample_test(where: str, *, drawn: int, draws: int, sampling_rate: float) -> NoiseTest:
    """Whether so many of the draws took their record: Binomial(draws, q)."""
    from scipy.stats import binom

    tail = min(binom.cdf(drawn, draws, sampling_rate), binom.sf(drawn - 1, draws, sampling_rate))
    return NoiseTest(
        where=where,
        what="the share of records that were sampled",
        planned=sampling_rate,
        used=drawn / max(draws, 1),
        p=min(1.0, 2 * float(tail)),
    )


def first_broken(checks: Sequence[NoiseTest]) -> NoiseTest | None:
    """The first figure that its law all but rules out, with a level that all checks share; None where there is none."""
    level = FALSE_ALARM / max(len(checks), 1)
    return next((check for check in checks if not check.p >= level), None)
