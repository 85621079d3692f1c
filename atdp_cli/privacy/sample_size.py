"""The largest sample that a step takes, a public number."""

from bisect import bisect_left
from functools import lru_cache

from atdp_cli.errors import RunError
from atdp_cli.privacy.pld import LOST_TAIL


@lru_cache
def largest_sample(records: int, sampling_rate: float) -> int:
    """The number of records that a Poisson sample passes with a probability of at most e^-50.

    Args:
        records: N ≥ 0, of which each is in the sample with probability `sampling_rate`, independently.

    Returns:
        At most N.
    """
    from scipy.stats import binom

    # binom.isf would subtract the tail from 1, where it is lost.
    return bisect_left(range(records), True, key=lambda size: binom.sf(size, records, sampling_rate) <= LOST_TAIL)


def refuse_larger(drawn: int, largest: int) -> None:
    """Raise RunError for a sample of more than `largest` records: the noise is not large enough for so many."""
    if drawn > largest:
        raise RunError(
            f"A sample has {drawn:,} records, above the {largest:,} that the noise covers.",
            "Continue with --resume. By chance this does not happen.",
        )
