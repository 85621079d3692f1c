"""Tests over several canaries (Holm, Fisher), their power, the limits they leave, and how alpha is split."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log, log1p
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Flags = npt.NDArray[np.bool_]

DRAWS = 199_999
"""The number of draws that estimate the joint distribution of ranks in a sample."""

_BLOCK = 512  # rows of draws at a time: what fits a processor's cache is computed three times as quickly

_SEED = 5  # of the power's draws; fixed, so that a verdict never changes between two runs


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p-values, in the order given: reject those at most the level.

    Controls the chance of any false rejection under any dependence. Source: Holm 1979, "A simple sequentially
    rejective multiple test procedure".

    Args:
        p_values: In (0, 1], at least one. Discrete ones (P(p <= t) <= t) make it conservative.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return tuple(float(value) for value in adjusted)


def fisher(p_values: Sequence[float]) -> float:
    """Fisher's combined p-value: x = -2 * sum(ln p) against chi-squared with 2m degrees of freedom.

    Exact for independent uniform p-values; for discrete ones, each stochastically larger than uniform, it is
    conservative. Source: Fisher 1925, "Statistical Methods for Research Workers", section 21.1.

    Args:
        p_values: m of them, in (0, 1], independent under the null.
    """
    from scipy.special import gammaincc  # takes half a second to load

    return float(gammaincc(len(p_values), -sum(log(p) for p in p_values)))


class TokenLengthGroup(NamedTuple):
    """The candidates that a secret is ranked among in a sample: those of its token length and itself, `size` in all."""

    tokens: int
    size: int


def fisher_in_sample(p_values: Sequence[float], length_groups: Sequence[TokenLengthGroup]) -> float:
    """Fisher's combined p-value for secrets that are ranked among one shared sample.

    Without memory, secrets and sample of one token length are alike, so that every order of them is as likely. The
    p-values are then uniform, but not independent: a sample with few high scores lowers all of them. The law is drawn
    from that, `DRAWS` times: p = (1 + #{as large}) / (1 + DRAWS), with fixed draws. Ties only raise the p-values that
    are given. Source: Phipson and Smyth 2010, "Permutation p-values should never be zero".

    Args:
        p_values: Two-sided, within the group: of each of m secrets, in (0, 1].
        length_groups: Of each secret, the same for all of one token length.
    """
    observed = -sum(log(p) for p in p_values) - 1e-9
    groups = tuple(sorted((group.size, count) for group, count in Counter(length_groups).items()))
    return (1 + int(np.count_nonzero(_in_samples(groups) >= observed))) / (1 + DRAWS)


@lru_cache(maxsize=4)
def _in_samples(groups: tuple[tuple[int, int], ...]) -> Floats:
    """Draws of Fisher's statistic, -Σ ln p, for (size of a token-length group, number of secrets), shape [DRAWS]."""
    generator, total = np.random.default_rng(_SEED), np.zeros(DRAWS)
    for size, count in groups:
        places = np.sort(_distinct(generator, size - 1 + count, count), axis=1)
        better = places - np.arange(count)
        p = np.minimum(1.0, 2 * np.minimum(better + 1, size - better) / size)
        total -= np.log(p).sum(axis=1)
    return total


def _distinct(generator: np.random.Generator, among: int, count: int) -> npt.NDArray[np.int64]:
    """`DRAWS` sets of `count` distinct numbers below `among`, each set as likely (Floyd's algorithm)."""
    chosen = np.empty((DRAWS, count), dtype=np.int64)
    for place in range(count):
        last = among - count + place
        drawn = generator.integers(last + 1, size=DRAWS)
        taken = (chosen[:, :place] == drawn[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, drawn)
    return chosen


@lru_cache(maxsize=64)
def power(stratum_sizes: tuple[int, ...], level: float, *, mean_exposure: float = 5.0) -> float:
    """The chance that Holm or Fisher, each at `level`, rejects if the exposures have mean `mean_exposure`.

    The alternative: canary i has exposure E_i = -log2(u_i), independent and exponential with mean b bits, u_i
    being its rank as a share of its group, so P(u <= t) = t ** (1 / (b ln 2)). No memorisation is the same
    family with b = 1 / ln 2. Ranks are whole, r_i = ceil(|S_i| u_i), and the p-values are those of
    `exposure.rank_of`: p_i = min(1, 2 min(r_i, |S_i| - r_i + 1) / |S_i|). Holm rejects something exactly when
    m min(p) <= level. By Monte Carlo with a fixed seed: 100,000 draws (standard error at most 0.0016), and fewer
    for more than 200 canaries, whose power is beyond doubt.

    Args:
        stratum_sizes: |S_i| of each canary, at least one.
        level: Of each of the two tests, in (0, 1).
        mean_exposure: b, bits, above 0.

    Returns:
        A probability.
    """
    from scipy.special import gammainccinv

    sizes = np.asarray(stratum_sizes, dtype=np.float64)
    fisher_bound = float(gammainccinv(sizes.size, level))
    generator = np.random.default_rng(_SEED)
    batches, batch = 10, max(100, min(10_000, 2_000_000 // sizes.size))
    rejected = 0
    for _ in range(batches):
        bits = generator.exponential(mean_exposure, (batch, sizes.size))
        rejected += int(np.count_nonzero(_rejected(bits, sizes, level, fisher_bound)))
    return rejected / (batches * batch)


@lru_cache(maxsize=64)
def least_detectable(stratum_sizes: tuple[int, ...], level: float, *, least_power: float) -> float | None:
    """The smallest mean exposure that Holm or Fisher, each at `level`, finds with probability `least_power`.

    Under the alternative of `power`, in tenths of a bit, by bisection over one set of draws, 20,000 for up to 100
    canaries (standard error of the power at most 0.0036).

    Args:
        stratum_sizes: |S_i| of each canary, at least one.

    Returns:
        Bits; None where no mean exposure up to the largest group's log2 |S| is found so often.
    """
    from scipy.special import gammainccinv

    sizes = np.asarray(stratum_sizes, dtype=np.float64)
    draws = np.random.default_rng(_SEED).exponential(1.0, (max(50, min(20_000, 2_000_000 // sizes.size)), sizes.size))
    fisher_bound = float(gammainccinv(sizes.size, level))
    highest = float(np.log2(sizes.max()))

    def detected(mean_exposure: float) -> bool:
        return float(_rejected(draws * mean_exposure, sizes, level, fisher_bound).mean()) >= least_power

    if highest <= 0 or not detected(highest):
        return None
    tenths = range(ceil(10 / log(2)), ceil(10 * highest))  # from what chance gives
    return (tenths.start + bisect_left(tenths, True, key=lambda tenth: detected(tenth / 10))) / 10


def mean_upper_limit(exposures: Sequence[float], most: float, *, confidence: float) -> float:
    """An upper confidence limit for the mean exposure of secrets drawn and planted as these, whatever their law.

    Exposures lie in [0, L]. Let X_i be independent with means μ_i, of mean μ. Then E Π (L − X_i) = Π (L − μ_i) ≤
    (L − μ)^m, the geometric mean being at most the arithmetic one, so by Markov's inequality Π (L − X_i) is at least
    (L − μ)^m / α with probability at most α. So with probability at least 1 − α

        μ ≤ L − (α · Π (L − X_i))^(1/m).

    Canaries of one run need not be independent: where a run remembers all of them or none, the limit holds for that
    run's canaries and not over runs.
    It also holds if a few canaries are fully memorised and the rest not. It is a bet against a mean that is too high,
    always with the largest stake. Source: Waudby-Smith and Ramdas 2024,
    "Estimating means of bounded random variables by betting", section 4.

    Args:
        exposures: m of them, at least one, bits, in [0, `most`]; independent.
        most: L > 0, bits: log2 |S| of the largest group.
        confidence: 1 − α, in (0, 1).
    """
    if max(exposures) >= most:
        return most
    logs = sum(log1p(-bits / most) for bits in exposures)
    return most * (1 - exp((log1p(-confidence) + logs) / len(exposures)))


def _rejected(bits: Floats, sizes: Floats, level: float, fisher_bound: float) -> Flags:
    """Whether Holm or Fisher rejects, for each row of exposures before they are rounded to ranks."""
    blocks = (bits[start : start + _BLOCK] for start in range(0, len(bits), _BLOCK))
    return np.concatenate([_rejected_in_block(block, sizes, level, fisher_bound) for block in blocks])


def _rejected_in_block(bits: Floats, sizes: Floats, level: float, fisher_bound: float) -> Flags:
    ranks = np.maximum(np.ceil(sizes * np.exp2(-bits)), 1)
    p = np.minimum(1.0, 2 * np.minimum(ranks, sizes - ranks + 1) / sizes)
    by_fisher = -np.log(p).sum(axis=1) >= fisher_bound
    rejected: Flags = by_fisher | (p.min(axis=1) * sizes.size <= level)
    return rejected


MANY = 15
"""The number of canaries from which the tests have power to spare."""

SHARE_OF_BOUNDS, SHARE_OF_FEW = 0.5, 0.02
"""The share of alpha for all bounds together, with many canaries and with few. Ten need almost all of it to find a mean
exposure of five bits four times in five. Many need a share for their bounds that is above mδ, or no claim with δ can be
refuted."""

SHARE_OF_ATTACKS, SHARE_OF_ATTACKS_OF_FEW = 0.2, 0.01
"""The share of alpha for the tests of all attacks that are gates, with many canaries and with few."""

SPARE = 2
"""How many times as many candidates are sampled as a canary of rank 1 needs to be rejected."""

Exact = Literal["auto", "always", "never"]
"""Whether canaries are ranked among all candidates: where that is cheap or needed, always, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRule:
    """A random sample of the candidates that decides a gate in place of all of them; fixed before a model is looked at.

    Attributes:
        size: n, from 1.
        only_where_expensive: Draw it only where the tokenizer makes the whole pool expensive.
    """

    size: int
    only_where_expensive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The level of everything that can fail a model.

    Attributes:
        test: Of Holm's and of Fisher's test, by each score.
        bound: Of each bound on ε that can fail the model: one minus its confidence.
        attack: Of the test of each attack that is a gate.
    """

    test: float
    bound: float
    attack: float


def split_alpha(
    alpha: float, *, scores: int, bounds: int, canaries: int, attacks: int = 0, ranks: bool = True
) -> Levels:
    """The levels, which sum to alpha over 2 tests a score, all bounds and all attacks.

    Args:
        alpha: In (0, 1).
        scores: 1, or 2 with a reference.
        bounds: How many bounds on ε can fail the model, from 0; nothing is for them where none can.
        canaries: How many are planted.
        attacks: How many attacks are gates, from 0.
        ranks: Whether the tests by ranks are a gate. If not, the attacks share what is theirs, and the tests are only
            reported, each at the level that it would have alone.
    """
    many = canaries >= MANY
    of_bounds = (SHARE_OF_BOUNDS if many else SHARE_OF_FEW) * alpha
    left = alpha - (of_bounds if bounds else 0.0)
    of_attacks = left if not ranks else (SHARE_OF_ATTACKS if many else SHARE_OF_ATTACKS_OF_FEW) * alpha
    by_ranks = alpha if not ranks else left - (of_attacks if attacks else 0.0)
    return Levels(test=by_ranks / (2 * scores), bound=of_bounds / max(1, bounds), attack=of_attacks / max(1, attacks))


def sample_size(level: float, canaries: int) -> int:
    """n for which Holm can reject one of m canaries with room to spare: its two-sided p is 2/(n+1) at rank 1.

    Args:
        level: The smallest that a test may have, in (0, 1).
        canaries: m, from 1.
    """
    return ceil(SPARE * 2 * canaries / level)
