"""What the canaries prove about ε, and the claim of the model's own ledger that it tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isqrt
from pathlib import Path
from typing import Literal

import numpy as np

from atdp_cli.audit.canary import Target
from atdp_cli.audit.epsilon_bounds import (
    guess_coins,
    in_out_attainable,
    in_out_bound,
    rank_attainable,
    rank_bound,
)
from atdp_cli.audit.exposure import Rank
from atdp_cli.audit_result import EpsilonBound
from atdp_cli.errors import BudgetError, InputError, UsageError
from atdp_cli.privacy.accountant import epsilon_group
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.guarantee import no_end_to_end
from atdp_cli.privacy.ledger import Ledger, private_events, read_beside

DELTA = 1e-6
"""Of the bounds on a model that makes no claim."""


@dataclass(frozen=True, kw_only=True)
class Games:
    """What the auditor may do, fixed before any model is looked at.

    Attributes:
        guesses: How many coins to guess, an even number; None for half of the canaries.
        top: How many candidates to name for each canary; None for the square root of the pool.

    Raises:
        UsageError: One is out of range.
    """

    guesses: int | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if self.guesses is not None and (self.guesses < 2 or self.guesses % 2):
            raise UsageError(f"guesses is {self.guesses}.", "Choose an even number from 2: half are guessed in.")
        if self.top is not None and self.top < 1:
            raise UsageError(f"top is {self.top}.", "Choose a number from 1.")


HALF_AND_ROOT = Games()


def epsilon_bounds(
    folder: Path,
    ranks: Sequence[Rank],
    targets: Sequence[Target],
    *,
    pool: int,
    coins: bool,
    games: Games,
    alpha: float,
) -> tuple[EpsilonBound, ...]:
    """Lower bounds on ε by every game that the canaries allow, all of them true with confidence 1 − alpha.

    Args:
        folder: Of the model; a ledger in it makes the claim.
        ranks: By the score that is judged: the ratio where there is a reference, else log p.
        pool: Candidates that the template has. Ranks within a sample of them bound nothing.
        coins: Whether fair coins decided which canaries were planted.

    Raises:
        UsageError: There are fewer canaries, or candidates, than the games were set for.
    """
    planted = [i for i, target in enumerate(targets) if target.planted]
    ranked = bool(planted) and all(rank.pool == pool for rank in ranks)
    guessing = coins and len(targets) >= 2
    if not (ranked or guessing):
        return ()
    ledger = _ledger(folder)
    delta, confidence = DELTA if ledger is None else ledger.delta, 1 - alpha / (ranked + guessing)
    shared = {"delta": delta, "confidence": confidence}
    bounds = []
    if guessing:
        bounds.append(_in_out(ranks, targets, games, ledger, shared))
    if ranked:
        bounds.append(_rank([ranks[i] for i in planted], [targets[i] for i in planted], games, ledger, shared))
    return tuple(bounds)


def _in_out(
    ranks: Sequence[Rank], targets: Sequence[Target], games: Games, ledger: Ledger | None, shared: dict[str, float]
) -> EpsilonBound:
    m = len(targets)
    r = 2 * max(1, m // 4) if games.guesses is None else games.guesses
    if r > m:
        raise UsageError(f"{r} guesses cannot be made of {m} canaries.", "Lower --guesses.")
    guesses = guess_coins([rank.exposure for rank in ranks], r)
    correct = sum(targets[i].planted == inside for i, inside in guesses)
    claim = _claim(ledger, targets, "zero-out")
    bound = in_out_bound(records=m, guesses=r, correct=correct, **shared)
    attainable = in_out_attainable(records=m, guesses=r, **shared)
    return EpsilonBound(
        method="in-out",
        adjacency="zero-out",
        epsilon=bound,
        attainable=attainable,
        **shared,
        guesses=r,
        correct=correct,
        top=None,
        claim=claim,
        finding=_finding(bound, attainable, claim),
    )


def _rank(
    ranks: Sequence[Rank], targets: Sequence[Target], games: Games, ledger: Ledger | None, shared: dict[str, float]
) -> EpsilonBound:
    pool = ranks[0].pool
    top = isqrt(pool) if games.top is None else games.top
    if top >= pool:
        raise UsageError(f"{top} of {pool} candidates cannot be named.", "Lower --top.")
    # The auditor names the same share of each stratum, so K candidates at most.
    wins = sum(rank.stratum_rank_max <= top * rank.stratum_size // pool for rank in ranks)
    m = len(ranks)
    claim = _claim(ledger, targets, "replace-one")
    bound = rank_bound(pool=pool, top=top, canaries=m, wins=wins, **shared)
    attainable = rank_attainable(pool=pool, top=top, canaries=m, **shared)
    return EpsilonBound(
        method="rank",
        adjacency="replace-one",
        epsilon=bound,
        attainable=attainable,
        **shared,
        guesses=m,
        correct=wins,
        top=top,
        claim=claim,
        finding=_finding(bound, attainable, claim),
    )


def _ledger(folder: Path) -> Ledger | None:
    """The ledger beside the weights; one that does not fit them claims nothing about them."""
    try:
        return read_beside(folder)
    except InputError:
        return None


def _claim(ledger: Ledger | None, targets: Sequence[Target], adjacency: Adjacency) -> float | None:
    """The ε that a ledger claims end to end for all records of the most repeated canary; None where it claims none."""
    if ledger is None or no_end_to_end(ledger) is not None:
        return None
    repeats = max(target.repeats for target in targets)
    events = private_events(ledger.events)
    try:
        with np.errstate(over="ignore"):  # of a privacy loss beyond all bounds, which gives inf
            epsilon = epsilon_group(events, ledger.delta, records=repeats, grid=ledger.grid, adjacency=adjacency)
    except BudgetError:  # in the thousands
        return None
    return epsilon if isfinite(epsilon) else None


def _finding(
    bound: float, attainable: float, claim: float | None
) -> Literal["refuted", "not-refuted", "inconclusive", "no-claim"]:
    if claim is None:
        return "no-claim"
    if attainable <= claim:
        return "inconclusive"
    return "refuted" if bound > claim else "not-refuted"
