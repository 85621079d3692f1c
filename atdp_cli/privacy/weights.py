"""The weight w that tokens without a flag get in a record's loss.

w must be public or depend on its own record alone: a weight measured on the corpus would make every record's
gradient depend on every other record, and break the sensitivity that the noise is scaled to.
"""

import math
from collections.abc import Sequence

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
