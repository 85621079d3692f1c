"""How alpha, the chance of failing a model that has learnt nothing, is split over everything that can fail one.

What can: Holm's and Fisher's test by each score, the test of each attack that is a gate, and each bound on ε that could
pass a limit or the ledger's claim. The split depends on what was planted, claimed and asked for, never on the model, so
that the union bound holds: a model that has learnt nothing fails by any of them with probability alpha at most. Limits
on exposures are no tests and spend nothing.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

MANY = 15
"""Canaries from which the tests have power to spare."""

SHARE_OF_BOUNDS, SHARE_OF_FEW = 0.5, 0.02
"""Of alpha, for all bounds together, by many canaries and by few. Ten need almost all of it to find a mean exposure of
five bits four times in five. Many need a share for their bounds that is above mδ, or no claim with δ can be refuted."""

SHARE_OF_ATTACKS, SHARE_OF_ATTACKS_OF_FEW = 0.2, 0.01
"""Of alpha, for the tests of all attacks that are gates together, likewise."""

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
