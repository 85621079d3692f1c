"""Shares of a corpus, estimated from a sample whose members stand for different numbers."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Share:
    """An estimated share with its 95 % interval.

    Attributes:
        sampled: How many were looked at.
        share: None where nothing was.
        low: 0 where nothing was.
        high: 1 where nothing was.
    """

    sampled: int
    share: float | None
    low: float
    high: float


def estimate(sampled: Sequence[tuple[bool, float]]) -> Share:
    """The share of those that are so, each weighed by how many it stands for.

    The interval is Clopper and Pearson's for as many equal members as the weights are worth, which is
    theirs itself where all weights are equal.
    Source: Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data".

    Args:
        sampled: Whether it is so, and a weight above 0, for each.
    """
    from scipy.special import betaincinv

    if not sampled:
        return Share(sampled=0, share=None, low=0.0, high=1.0)
    total = sum(weight for _, weight in sampled)
    share = sum(weight for so, weight in sampled if so) / total
    worth = total**2 / sum(weight**2 for _, weight in sampled)
    hits = share * worth
    low = float(betaincinv(hits, worth - hits + 1, 0.025)) if any(so for so, _ in sampled) else 0.0
    high = 1.0 if all(so for so, _ in sampled) else float(betaincinv(hits + 1, worth - hits, 0.975))
    return Share(sampled=len(sampled), share=share, low=low, high=high)
