"""Statistics of all records, released once with Gaussian noise: counts of public items, and sensitive shares.

For the counts, records vote, each with an L2 norm of at most 1, so zeroing out a record moves the sum by at most 1.
Votes are never negative, so replacing a record moves it by at most √2: ‖u − v‖² ≤ ‖u‖² + ‖v‖² where u·v ≥ 0.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from atdp_cli.privacy.rng import Floats

SENSITIVITY, REPLACED = 1.0, math.sqrt(2)

_MEANS, _SHARES = 24, (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8, 0.95)
"""The number of means, and the shares of items that occur, among which the prior is chosen."""


def clipped_votes(records: Iterable[Mapping[int, float]], items: int) -> Floats:
    """Σ v·min(1, 1/‖v‖₂) over the records' votes v, shape [items].

    Args:
        records: Each record's votes ≥ 0 by item, 0 ≤ item < `items`.

    Raises:
        ValueError: A vote is negative or not finite.
    """
    total = np.zeros(items)
    for votes in records:
        if not votes:
            continue
        values = np.fromiter(votes.values(), float, len(votes))
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("every vote must be a finite number of at least 0")
        voted = np.fromiter(votes.keys(), np.int64, len(votes))
        total[voted] += values / max(1.0, float(np.sqrt(values @ values)))
    return total


def shrink_counts(noisy: Floats, sigma: float) -> Floats:
    """The posterior means of counts c ≥ 0, given c + N(0, σ²). Most items do not occur: theirs shrink towards 0.

    A share of the items occurs, with counts from an exponential distribution; the share and its mean are those of a
    grid under which `noisy` is likeliest. This is post-processing: it costs no privacy.
    Source: Johnstone and Silverman 2004, "Needles and straw in haystacks", with an exponential slab on c ≥ 0.

    Args:
        noisy: Shape [items], at least one.
        sigma: σ > 0.

    Returns:
        Shape [items], none negative.
    """
    largest = max(float(noisy.max()), sigma)
    spike = -0.5 * (noisy / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    best, means = -math.inf, np.zeros_like(noisy)
    for mean in np.geomspace(0.25 * sigma, largest, _MEANS):
        slab, centre = _slab(noisy, sigma, float(mean))
        for share in _SHARES:
            occurs, absent = math.log(share) + slab, math.log1p(-share) + spike
            either = np.logaddexp(occurs, absent)
            if (evidence := float(either.sum())) > best:
                best, means = evidence, np.exp(occurs - either) * centre
    return np.maximum(means, 0.0)


def _slab(noisy: Floats, sigma: float, mean: float) -> tuple[Floats, Floats]:
    """The log density of c + N(0, σ²) with c exponential of this mean, and the mean of c given the sum.

    Given the sum y, c is a normal around y − σ²/mean, truncated at 0.
    """
    from scipy.special import log_ndtr

    shifted = (noisy - sigma**2 / mean) / sigma
    tail = log_ndtr(shifted)
    density = sigma**2 / (2 * mean**2) - noisy / mean - math.log(mean) + tail
    mills = np.exp(-0.5 * shifted**2 - 0.5 * math.log(2 * math.pi) - tail)
    return density, sigma * (shifted + mills)


RECORD_FLOOR = 0.05
"""Smallest per-record weight, so that a record without flags still trains."""


def balancing_weight(alpha: float, target_share: float) -> float:
    """w = α(1−r)/(r(1−α)), clamped to [0, 1]: the paper's weight for the sensitive tokens' share r.

    With a share α of tokens at weight 1 and the rest at w, the sensitive tokens carry α/(α + w(1−α)) = r of
    the total weight. For α ≥ r no w ≤ 1 lowers their share to r, and w is 1.

    Args:
        alpha: Share of sensitive tokens, in [0, 1].
        target_share: r, in (0, 1).
    """
    if not 0 <= alpha <= 1:
        raise ValueError("alpha must lie in [0, 1]")
    if not 0 < target_share < 1:
        raise ValueError("target_share must lie in (0, 1)")
    if alpha >= target_share:
        return 1.0
    return alpha * (1 - target_share) / (target_share * (1 - alpha))


def record_weight(alpha: float, target_share: float) -> float:
    """`balancing_weight` of one record's own α, at least `RECORD_FLOOR`."""
    return max(RECORD_FLOOR, balancing_weight(alpha, target_share))


def released_share(alphas: Sequence[float], noise: float) -> float:
    """The corpus' noisy mean share, (Σα_i + noise)/N clamped to [0, 1].

    Σα_i with α_i in [0, 1] has sensitivity 1 when one record is zeroed out; `noise` is one draw from
    N(0, σ²), and the ledger holds that Gaussian release.
    """
    if any(not 0 <= alpha <= 1 for alpha in alphas):
        raise ValueError("every alpha must lie in [0, 1]")
    if not alphas:
        raise ValueError("no records")
    return min(1.0, max(0.0, (math.fsum(alphas) + noise) / len(alphas)))
