"""Exact draws from the discrete Gaussian: integers k with probability in proportion to exp(−k²/2σ²).

Source: Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy", algorithms 1 to 3. All
arithmetic is on integers, of numpy where they are small and of Python where they are not, and the only source of
chance is a key stream's bits, so no rounding changes a probability.

Many draws are made at once. A coin of probability p is heads where a uniform real number is below p; its first 58
bits are drawn for all coins together and nearly always decide. Where they do not, further bits are drawn until they
do.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from atdp_cli.privacy.rng import KeyStream

Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_Flags = npt.NDArray[np.bool_]

LARGEST_DEVIATION = 2**53
"""The largest σ, for which draws stay far below 2⁶³."""

_WORD, _BITS = 64, 58
_MOST_SHARES = 2 ** (_WORD - _BITS) - 1

_PROPOSALS = 2.3
"""Proposals a draw. For a large σ a share 1 − 1/e of the Laplace's and √(π/2e) of the Gaussian's are accepted."""


def discrete_gaussian(variance: Fraction, count: int, stream: KeyStream) -> Integers:
    """`count` independent draws, shape [count]. (Algorithm 3.)

    Args:
        variance: σ² > 0, of which σ is at most `LARGEST_DEVIATION`. The variance of the draws is slightly below it.

    Raises:
        ValueError: σ² is not in that range.
    """
    if not 0 < variance <= LARGEST_DEVIATION**2:
        raise ValueError("the variance must be above 0 and at most that of the largest deviation")
    draws = np.zeros(0, dtype=np.int64)
    while len(draws) < count:
        proposals = math.ceil(_PROPOSALS * (count - len(draws))) + 8
        draws = np.concatenate((draws, _accepted(variance, proposals, stream)))
    return draws[:count]


def _accepted(variance: Fraction, proposals: int, stream: KeyStream) -> Integers:
    """Those of the draws from a discrete Laplace of scale t = ⌊σ⌋ + 1 that a coin of probability
    exp(−(|y| − σ²/t)²/2σ²) accepts."""
    a, b = variance.numerator, variance.denominator
    scale = math.isqrt(a // b) + 1
    drawn = _discrete_laplace(scale, proposals, stream)
    # (|y| − σ²/t)²/2σ² = (|y|tb − a)²/(2abt²) for σ² = a/b
    below = 2 * a * b * scale**2
    exponents = [divmod((y * scale * b - a) ** 2, below) for y in np.abs(drawn).tolist()]
    heads = _exponential_coins([rest for _, rest in exponents], below, stream)
    whole = np.array([min(most, _WORD**2) for most, _ in exponents], dtype=np.int64)
    for already in range(int(whole.max(initial=0))):
        asked = np.flatnonzero(heads & (whole > already))
        heads[asked] = _exponential_coins([1] * len(asked), 1, stream)
    return drawn[heads]


def _discrete_laplace(scale: int, proposals: int, stream: KeyStream) -> Integers:
    """Draws with probability in proportion to exp(−|y|/t), at most one a proposal. (Algorithm 2 with s = 1.)"""
    remainders = _below(scale, proposals, stream)
    remainders = remainders[_exponential_coins(remainders.tolist(), scale, stream)]
    quotients = np.zeros(len(remainders), dtype=np.int64)
    alive = np.arange(len(remainders))
    while len(alive):
        alive = alive[_exponential_coins([1] * len(alive), 1, stream)]
        quotients[alive] += 1
    sizes = remainders + scale * quotients
    negative = (stream.words(len(sizes)) & np.uint64(1)).astype(np.bool_)
    kept = ~(negative & (sizes == 0))
    signed: Integers = (sizes * (1 - 2 * negative.astype(np.int64)))[kept]
    return signed


def _below(limit: int, count: int, stream: KeyStream) -> Integers:
    """Uniform draws from 0, …, limit − 1, by rejection, shape [count]."""
    shift = np.uint64(_WORD - max(1, (limit - 1).bit_length()))
    draws = np.zeros(0, dtype=np.int64)
    while len(draws) < count:
        drawn = (stream.words(count - len(draws)) >> shift).astype(np.int64)
        draws = np.concatenate((draws, drawn[drawn < limit]))
    return draws


def _exponential_coins(numerators: Sequence[int], denominator: int, stream: KeyStream) -> _Flags:
    """Coins of probability exp(−γ) for γ = numerator/denominator from 0 to 1, each. (Algorithm 1.)

    Coins of probability γ/K are tossed for K = 1, 2, … until one is tails; heads is an odd K.
    """
    floors = np.array([(numerator << _BITS) // denominator for numerator in numerators], dtype=np.uint64)
    heads = np.zeros(len(numerators), dtype=np.bool_)
    alive, shares = np.arange(len(numerators)), 1
    while len(alive):
        words = stream.words(len(alive)) >> np.uint64(_WORD - _BITS)
        again, unsure = _compared(words, floors[alive], shares)
        for place in np.flatnonzero(unsure).tolist():
            word, numerator = int(words[place]), numerators[alive[place]]
            again[place] = _is_below(word, numerator, denominator * shares, stream)
        heads[alive[~again]] = shares % 2 == 1
        alive, shares = alive[again], shares + 1
    return heads


def _compared(words: _Words, floors: _Words, shares: int) -> tuple[_Flags, _Flags]:
    """Whether uniform numbers with these first 58 bits are surely below γ/K, and whether that is not sure.

    Args:
        floors: ⌊2⁵⁸γ⌋.
        shares: K ≥ 1.
    """
    if shares > _MOST_SHARES:  # happens with a probability below 1/63!
        return np.zeros(len(words), dtype=np.bool_), np.ones(len(words), dtype=np.bool_)
    # Each number is at least words/2⁵⁸ and less than (words + 1)/2⁵⁸.
    below = (words + np.uint64(1)) * np.uint64(shares) <= floors
    return below, ~below & (words * np.uint64(shares) <= floors)


def _is_below(word: int, numerator: int, denominator: int, stream: KeyStream) -> bool:
    """Whether a uniform number with these first 58 bits is below numerator/denominator."""
    bits = _BITS
    while True:
        if (word + 1) * denominator <= numerator << bits:
            return True
        if word * denominator >= numerator << bits:
            return False
        word, bits = (word << _WORD) | int(stream.words(1)[0]), bits + _WORD
