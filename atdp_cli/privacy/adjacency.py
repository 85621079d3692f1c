"""Adjacency, and events as the accountants take them: equal steps counted together, in a fixed order."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from atdp_cli.privacy.ledger import GaussianRelease, PrivateEvent

Adjacency = Literal["zero-out", "replace-one"]


class EqualSteps(NamedTuple):
    """`steps` equal steps with sampling rate q in (0, 1] and noise multiplier σ > 0."""

    sampling_rate: float
    noise_multiplier: float
    steps: int


def equal_steps(events: Iterable[PrivateEvent], adjacency: Adjacency = "zero-out") -> tuple[EqualSteps, ...]:
    """Steps of equal (q, σ) counted together and sorted, so that ε does not depend on the order, to the last digit.

    Replacing a record is taken to move a sum by twice its sensitivity. For a release that it moves by less, σ is
    larger by that ratio.
    """
    counts: Counter[tuple[float, float]] = Counter()
    for event in events:
        steps, sigma = 1, event.noise_multiplier
        if not isinstance(event, GaussianRelease):
            steps = event.steps
        elif adjacency == "replace-one":
            sigma *= 2 / event.replaced
        counts[sampling_rate(event), sigma] += steps
    return tuple(EqualSteps(*key, count) for key, count in sorted(counts.items()))


def shifted_steps(events: Iterable[PrivateEvent], adjacency: Adjacency) -> tuple[EqualSteps, ...]:
    """`equal_steps` with σ in units of how far a record that is read moves the sum: under replace-one half of σ.

    Where it is known which steps read the record, they are so many Gaussian mechanisms of these σ.
    """
    runs = equal_steps(events, adjacency)
    return runs if adjacency == "zero-out" else tuple(EqualSteps(q, sigma / 2, steps) for q, sigma, steps in runs)


def sampling_rate(event: PrivateEvent) -> float:
    """q of an event; a release reads every record."""
    return 1.0 if isinstance(event, GaussianRelease) else event.sampling_rate


def mean_loss(runs: Sequence[EqualSteps], records: int = 1) -> float:
    """A bound on the mean privacy loss of `records` records, n ~ Binomial(records, q) of which are in a step.

    That of a step is at most E[n²]/(2σ²), since the divergence is convex, and for one record at most q²(exp(1/σ²)−1).
    """
    total = 0.0
    for q, sigma, steps in runs:
        precision = 1 / max(sigma, 1e-100) ** 2
        bound = (records * q * (1 - q) + (records * q) ** 2) * precision / 2
        if records == 1 and precision < 700:
            bound = min(bound, q**2 * math.expm1(precision))
        total += steps * bound
    return total
