"""The rank of one secret among all candidates, its exposure in bits, and its calibrated p-value."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Lengths = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A secret's place under one score: rank 1 is the best; candidates that tie share an interval of ranks.

    Every exposure takes the larger rank of the interval, so a tie is never evidence of memory, and the
    exposure agrees with the p-value: p = min(1, 2 ** (1 - exposure)) wherever the upper tail is the
    smaller.

    Attributes:
        rank_min: 1 + how many candidates of the pool score higher.
        rank_max: How many candidates of the pool score at least as high, the secret among them.
        pool: Candidates in all.
        stratum_rank_min: `rank_min` among the candidates of as many tokens.
        stratum_rank_max: `rank_max` among the candidates of as many tokens.
        stratum_size: |S|, the candidates of as many tokens.
        exposure: log2(|S| / stratum_rank_max), bits, in [0, log2 |S|].
        exposure_plain: log2(pool) - log2(rank_max), bits: Carlini et al. 2019, "The Secret Sharer".
        exposure_per_token: The same over the pool by mean score per token, as the ATDP paper ranks.
        p_value: Two-sided, within the stratum, in (0, 1].
        tied: All of the stratum has one score, so that it cannot tell the secret from any other candidate.
        unresolved: The share of the stratum, without the secret, whose scores are the secret's up to rounding: the
            rank cannot be told more closely than that.
    """

    rank_min: int
    rank_max: int
    pool: int
    stratum_rank_min: int
    stratum_rank_max: int
    stratum_size: int
    exposure: float
    exposure_plain: float
    exposure_per_token: float
    p_value: float
    tied: bool
    unresolved: float = 0.0


ROUNDING = 16 * 2.0**-53
"""The relative rounding error of a sum of some ten log-probabilities in fp64."""


def rank_of(scores: Scores, lengths: Lengths, index: int) -> Rank:
    """Rank the secret at `index` among all candidates.

    The secret was drawn uniformly from the pool, hence uniformly from the candidates of its own length.
    Under no memorisation the scores do not depend on it, so with S the candidates of equal token length

        p = min(1, 2 * min(#{s >= s*}, #{s <= s*}) / |S|)

    satisfies P(p <= t) <= t for every t, whatever the model and however many scores tie. It is two-sided
    since a canary that training made the *least* likely gives itself away as well. Without memory the
    exposure is close to exponential with mean 1 / ln 2 = 1.44 bits.

    Args:
        scores: Higher is likelier: log p, or log p - log p_ref. Finite, or -inf where a candidate is known to rank
            behind the secret by the sum and by the mean (`score_likeliest`). Shape [pool].
        lengths: Tokens that each score sums over, shape [pool], from 0 (an empty sum scores 0).
        index: The secret's place in the pool.
    """
    score = scores[index]
    rank_min, rank_max = _ranks(scores, score)
    stratum = scores[lengths == lengths[index]]
    stratum_rank_min, stratum_rank_max = _ranks(stratum, score)
    at_most = stratum.size - stratum_rank_min + 1
    means = scores / np.maximum(lengths, 1)
    return Rank(
        rank_min=rank_min,
        rank_max=rank_max,
        pool=scores.size,
        stratum_rank_min=stratum_rank_min,
        stratum_rank_max=stratum_rank_max,
        stratum_size=stratum.size,
        exposure=log2(stratum.size / stratum_rank_max),
        exposure_plain=log2(scores.size / rank_max),
        exposure_per_token=log2(scores.size / _ranks(means, means[index])[1]),
        p_value=min(1.0, 2 * min(stratum_rank_max, at_most) / stratum.size),
        tied=bool(stratum.min() == stratum.max()),
        unresolved=(int(np.count_nonzero(np.abs(stratum - score) <= ROUNDING * abs(score))) - 1) / stratum.size,
    )


def _ranks(scores: Scores, score: np.float64) -> tuple[int, int]:
    """The best and the worst rank that a candidate of this score can claim among `scores`."""
    return int(np.count_nonzero(scores > score)) + 1, int(np.count_nonzero(scores >= score))


RESAMPLES = 10_000

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


def bootstrap(clusters: Sequence[Floats], *, resamples: int = RESAMPLES) -> Interval:
    """A 95 % percentile interval for the mean over all: repetitions are drawn with replacement, then canaries in each.

    With one repetition it is the plain bootstrap over its canaries.
    Source: Davison and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8.

    Args:
        clusters: One array a repetition, all of one length.
    """
    generator = np.random.default_rng(0)
    values = np.stack(clusters)
    seeds, canaries = values.shape
    chosen = generator.integers(seeds, size=(resamples, seeds, 1))
    within = generator.integers(canaries, size=(resamples, seeds, canaries))
    low, high = np.percentile(values[chosen, within].mean(axis=(1, 2)), [2.5, 97.5])
    return float(low), float(high)
