"""Counts over a public domain too large to list, such as all words: those that reach a threshold, with noise.

The mechanism adds the same noise to every item of the domain, also to the countless ones without a vote, and what it
releases is a function of the noisy counts alone: an item with its noisy count where that reaches the item's threshold.
So it costs what the noise costs, and takes no δ for words that only one of two neighbours has. Thresholds are public.

The noise of items without votes is never drawn one by one. An item x passes with p(x) = 1 − exp(−λ·share(x)), each by
itself, where the shares of all items sum to at most 1. Exactly so are items hit when a Poisson number of mean λ is
drawn and each hits x with probability share(x): a Poisson process splits into independent ones. Each that is hit gets
noise beyond its threshold. Thresholds are quantiles of the continuous Gaussian, floats have 53 bits, and released
counts are multiples of σ/16, so that the lattice of neither shows: all of this moves the distribution of what is
released by less than 10⁻¹³ in total variation.
Source: Cormode, Procopiuc, Srivastava and Tran 2012, "Differentially Private Summaries for Sparse Data", section 4.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from scipy.stats import norm

from atdp_cli.privacy.rng import KeyStream

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
    """How likely the noise alone reaches the threshold."""
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
