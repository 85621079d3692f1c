"""How alpha, the chance of failing a model that has learnt nothing, is split over everything that can fail one.

What can: Holm's and Fisher's test by each score, and each bound on ε that could pass a limit or the ledger's claim.
The split depends on what was planted and claimed, never on the model, so that the union bound holds: a model that has
learnt nothing fails by any of them with probability alpha at most. Limits on exposures are no tests and spend nothing.
Extraction, membership and relearning cannot fail a model.
"""

from dataclasses import dataclass

MANY = 15
"""Canaries from which the tests have power to spare."""

SHARE_OF_BOUNDS, SHARE_OF_FEW = 0.5, 0.02
"""Of alpha, for all bounds together, by many canaries and by few. Ten need almost all of it to find a mean exposure of
five bits four times in five. Many need a share for their bounds that is above mδ, or no claim with δ can be refuted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The level of everything that can fail a model.

    Attributes:
        test: Of Holm's and of Fisher's test, by each score.
        bound: Of each bound on ε that can fail the model: one minus its confidence.
    """

    test: float
    bound: float


def split_alpha(alpha: float, *, scores: int, bounds: int, canaries: int) -> Levels:
    """The levels, which sum to alpha over 2 tests a score and all bounds.

    Args:
        alpha: In (0, 1).
        scores: 1, or 2 with a reference.
        bounds: How many bounds on ε can fail the model, from 0; all of alpha is for the tests where none can.
        canaries: How many are planted.
    """
    of_bounds = (SHARE_OF_BOUNDS if canaries >= MANY else SHARE_OF_FEW) * alpha
    return Levels(test=(alpha - (of_bounds if bounds else 0.0)) / (2 * scores), bound=of_bounds / max(1, bounds))
