"""Statistics of all records, released once with discrete Gaussian noise: counts of public items, sensitive shares.

For the counts, records vote, each with an L2 norm of at most 1, so zeroing out a record moves the sum by at most 1.
Votes are never negative, so replacing a record moves it by at most √2: ‖u − v‖² ≤ ‖u‖² + ‖v‖² where u·v ≥ 0. Votes
are truncated to whole multiples of a grid's width 2⁻ᵏ, which makes no norm larger, and summed as integers. The noise
is drawn exactly, on the same grid, so that no figure on the way to the released numbers is rounded.

The accountant takes such a release for a Gaussian one with the same σ. For what that covers, count in widths: noise
of deviation s = σ2ᵏ is added to a vector x of d integers, and neighbours' vectors differ by Δ.

- Rényi divergences are at most those of the Gaussian, α‖Δ‖²/2s², coordinate by coordinate (Canonne, Kamath and Steinke
  2020, theorem 4), so all that is said in zCDP or RDP holds as it stands.
- Let P be the law of the noise and R that of the Gaussian N(0, s²) rounded to the nearest integer. x + R is the
  Gaussian mechanism's output x + N(0, s²), rounded, so what is proved for the Gaussian holds for it. With φ the density
  of N(0, s²), Σφ(j) ≥ 1 by Poisson's formula, so P(j) ≤ φ(j); and R(j) = ∫φ(j+u)du over |u| ≤ ½, which is
  φ(j)·∫exp(−u²/2s²)cosh(ju/s²)du ≥ φ(j)(1 − 1/24s²). So P(j) − R(j) ≤ P(j)/24s² for all j, and the total variation
  between P and R is at most 1/24s², and d/24s² for the d coordinates in which neighbours differ;
  the noise of all others is the same in both. Hence
  δ(ε) ≤ δ_Gauss(ε) + (1 + e^ε)·d/24s², for this release and for whatever it is composed with.
- The grid is chosen so that s lies in [2⁵², 2⁵³). For two records of half a million words each, d/24s² is below 10⁻²⁶,
  far less than the accountant's own grid rounds up.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from scipy.stats import norm

from atdp_cli.privacy.discrete_gaussian import discrete_gaussian
from atdp_cli.privacy.rng import Floats, KeyStream
from atdp_cli.privacy.trace import Released

SENSITIVITY, REPLACED = 1.0, math.sqrt(2)

_MEANS, _SHARES = 24, (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.8, 0.95)
"""The number of means, and the shares of items that occur, among which the prior is chosen."""

_MANTISSA = 53
"""Bits of a float's significand: with so many, σ in widths of the grid is an integer, and σ is used as it is."""


@dataclass(frozen=True, kw_only=True)
class GridSum:
    """A sum over records in whole multiples of 2⁻ᵏ.

    Attributes:
        bits: k ≥ 0.
        counts: The multiples.
    """

    bits: int
    counts: tuple[int, ...]


def grid_bits(standard_deviation: float) -> int:
    """k of the grid for noise of this standard deviation, which is from 2⁵² to 2⁵³ of the grid's widths.

    Raises:
        ValueError: It is not above 0, or at 2⁵³ or above.
    """
    if not 0 < standard_deviation < 2.0**_MANTISSA:
        raise ValueError("the standard deviation must be above 0 and below 2**53")
    return _MANTISSA - math.frexp(standard_deviation)[1]


def add_release_noise(total: GridSum, standard_deviation: float, stream: KeyStream) -> tuple[Floats, Released]:
    """The sum with discrete Gaussian noise, shape [len(counts)], and what was added: the sum after less that before.

    Args:
        standard_deviation: σ·sensitivity, in units of the sum.
    """
    unit = 1 << total.bits
    scale = Fraction(standard_deviation) * unit
    noise = discrete_gaussian(scale**2, len(total.counts), stream)
    noisy = [count + drawn for count, drawn in zip(total.counts, noise.tolist(), strict=True)]
    squares = sum((after - before) ** 2 for after, before in zip(noisy, total.counts, strict=True))
    used = Released(
        standard_deviation=float(scale / unit),
        grid=1 / unit,
        coordinates=len(noisy),
        squares=float(Fraction(squares, unit**2)),
        first=noisy[0] / unit,
    )
    return np.array([count / unit for count in noisy]), used


def clipped_votes(records: Iterable[Mapping[int, float]], items: int, bits: int) -> GridSum:
    """Σ v·min(1, 1/‖v‖₂) over the records' votes v, each record's truncated to multiples of 2^−bits.

    Args:
        records: Each record's votes ≥ 0 by item ≥ 0.
        items: How many items there are at least, with votes or without.

    Raises:
        ValueError: A vote is negative or not finite.
    """
    total = [0] * items
    for votes in records:
        total += [0] * (max(votes, default=0) + 1 - len(total))
        for item, count in zip(votes, _unit_votes(list(votes.values()), bits), strict=True):
            total[item] += count
    return GridSum(bits=bits, counts=tuple(total))


def _unit_votes(votes: Sequence[float], bits: int) -> list[int]:
    """One record's votes in multiples of 2^−bits, their L2 norm at most 2^bits of them. Integers alone decide that."""
    counts, unit = [_truncated(vote, bits) for vote in votes], 1 << bits
    squares = sum(count * count for count in counts)
    if squares <= unit * unit:
        return counts
    norm = math.isqrt(squares - 1) + 1  # rounded up
    return [count * unit // norm for count in counts]


def _truncated(number: float, bits: int) -> int:
    """⌊number·2^bits⌋, exactly."""
    if not (math.isfinite(number) and number >= 0):
        raise ValueError("every vote must be a finite number of at least 0")
    numerator, denominator = number.as_integer_ratio()
    return (numerator << bits) // denominator


def shrink_counts(noisy: Floats, sigma: float) -> Floats:
    """The posterior means of counts c ≥ 0, given c + N(0, σ²). Most items do not occur: theirs shrink towards 0.

    A share of the items occurs, with counts from an exponential distribution; the share and its mean are those of a
    grid under which the items are likeliest. This is post-processing: it costs no privacy.
    Source: Johnstone and Silverman 2004, "Needles and straw in haystacks", with an exponential slab on c ≥ 0.

    Args:
        noisy: Shape [..., items], at least one item; the share and the mean are those of a row.
        sigma: σ > 0.

    Returns:
        Shape [..., items], none negative.
    """
    largest = np.maximum(noisy.max(axis=-1, keepdims=True), sigma)
    spike = -0.5 * (noisy / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    best, means = np.full_like(largest, -math.inf), np.zeros_like(noisy)
    for mean in np.geomspace(0.25 * sigma, largest, _MEANS):
        slab, centre = _slab(noisy, sigma, mean)
        larger = np.maximum(slab, spike)
        present, absent = np.exp(slab - larger), np.exp(spike - larger)
        for share in _SHARES:
            either = share * present + (1 - share) * absent
            evidence = (larger + np.log(either)).sum(axis=-1, keepdims=True)
            if (likelier := evidence > best).any():
                means = np.where(likelier, share * present / either * centre, means)
                best = np.maximum(best, evidence)
    return np.maximum(means, 0.0)


def _slab(noisy: Floats, sigma: float, mean: Floats) -> tuple[Floats, Floats]:
    """The log density of c + N(0, σ²) with c exponential of a row's mean, and the mean of c given the sum.

    Given the sum y, c is a normal around y − σ²/mean, truncated at 0.
    """
    from scipy.special import log_ndtr

    shifted = (noisy - sigma**2 / mean) / sigma
    tail = log_ndtr(shifted)
    density = sigma**2 / (2 * mean**2) - noisy / mean - np.log(mean) + tail
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


Item = TypeVar("Item", bound=Hashable)

MADE_UP = 0.01
"""λ: how many items without a vote a release has, in expectation."""

STEP = 1 / 16
"""Released counts are multiples of so many standard deviations, rounded down."""


def threshold(share: float, standard_deviation: float) -> float:
    """The least noisy count with which an item is released.

    An item with no vote reaches it with probability 1 − exp(−`MADE_UP`·share).

    Args:
        share: Of the domain, in (0, 1]: likelier items have lower thresholds.
        standard_deviation: Of the noise.

    >>> round(threshold(26**-5, 1.0), 2)
    6.03
    """
    return standard_deviation * float(norm.isf(_passing(share)))


def released_items(
    noisy: Mapping[Item, float],
    standard_deviation: float,
    share: Callable[[Item], float],
    draw: Callable[[], Item | None],
    stream: KeyStream,
) -> dict[Item, float]:
    """The items of the domain whose noisy counts reach their thresholds.

    Args:
        noisy: The items with votes, each with its noisy count.
        standard_deviation: Of their noise.
        share: Of an item of the domain.
        draw: Gives each item with the probability that is its share, and otherwise None.
        stream: The source of all other randomness.
    """
    sigma = standard_deviation
    kept = {item: _rounded(count, sigma) for item, count in noisy.items() if count >= threshold(share(item), sigma)}
    for _ in range(_poisson(MADE_UP, stream)):
        item = draw()
        if item is not None and item not in noisy:
            beyond = _passing(share(item)) * float(stream.uniforms(1)[0])
            kept[item] = _rounded(sigma * float(norm.isf(beyond)), sigma)
    return kept


def _rounded(count: float, standard_deviation: float) -> float:
    step = STEP * standard_deviation
    return math.floor(count / step) * step


def _passing(share: float) -> float:
    """The probability that noise alone reaches the threshold."""
    return -math.expm1(-MADE_UP * share)


def _poisson(mean: float, stream: KeyStream) -> int:
    """A draw from the Poisson distribution, by inversion."""
    uniform, drawn = float(stream.uniforms(1)[0]), 0
    probability = below = math.exp(-mean)
    while uniform > below and probability > 0:
        drawn += 1
        probability *= mean / drawn
        below += probability
    return drawn
