"""The games that bound ε from below: planned before a model is looked at, then played on its scores.

Each is set beside the claim of the model's own ledger. In `in-out` the auditor guesses coins, in `rank` names the
likeliest candidates of each canary, in `pair` says which of two candidates is the canary. A pair is a candidate and its
mirror image, the one as far from the end of the template's order as this is from its beginning. The secret is a uniform
draw, so given the pair it is either with probability one half, as if a coin had chosen it. Every game is about what a
canary's records say (replace-one adjacency): where a coin leaves a canary out, they have another secret.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, isqrt
from typing import Literal

from atdp_cli.audit.canary import Target
from atdp_cli.audit.epsilon_bounds import guess_coins, in_out_bound, rank_bound
from atdp_cli.audit.exposure import Rank, Scores
from atdp_cli.audit.hypothesis_tests import Levels, split_alpha
from atdp_cli.audit.results import EpsilonBound, GroupEpsilon
from atdp_cli.audit.stated_epsilon import StatedEpsilon
from atdp_cli.audit.verdict import Limits
from atdp_cli.errors import UsageError
from atdp_cli.files.documents import copy_fields


@dataclass(frozen=True, kw_only=True)
class Games:
    """The limits of the games, fixed before any model is read.

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
            raise UsageError(f"coin-guesses is {self.guesses}.", "Choose an even number from 2: half are guessed in.")
        if self.top is not None and self.top < 1:
            raise UsageError(f"rank-guesses is {self.top}.", "Choose a number from 1.")


HALF_AND_ROOT = Games()

NOTHING_REVEALED = StatedEpsilon(epsilon=0.0, delta=0.0)
"""The strongest claim, which any bound above 0 refutes."""

Method = Literal["in-out", "rank", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One game with everything that its bound depends on besides the model.

    Attributes:
        canaries: m: those with a coin for `in-out`, those planted for the others.
        guesses: r ≤ m; all of them but for `in-out`.
        pool, top: N and K of `rank`; 2 and 1 for `pair`.
        level: One minus the bound's confidence.
    """

    method: Method
    canaries: int
    guesses: int
    pool: int = 2
    top: int = 1
    claim: StatedEpsilon
    level: float

    @property
    def attainable(self) -> float:
        """The bound if all guesses were right: no larger claim can be refuted."""
        return self.bound(self.guesses)

    def bound(self, correct: int) -> float:
        """The largest ε that so many right guesses refute."""
        return _proved(self, correct)


@lru_cache(maxsize=1024)
def _proved(game: Game, correct: int) -> float:
    """The bound of a game, computed once for all models of a plan."""
    shared = {"delta": game.claim.delta, "confidence": 1 - game.level}
    if game.method == "in-out":
        return in_out_bound(records=game.canaries, guesses=game.guesses, correct=correct, **shared)
    return rank_bound(pool=game.pool, top=game.top, canaries=game.canaries, wins=correct, **shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class GamePlan:
    """The games to play, and the levels of all that can fail the model; both fixed before it is looked at.

    Attributes:
        groups: What the ledger claims end to end of all records of a canary together.
    """

    games: tuple[Game, ...]
    levels: Levels
    groups: tuple[GroupEpsilon, ...] = ()


def plan_games(
    targets: Sequence[Target],
    *,
    pool: int,
    coins: bool,
    ranked: bool,
    games: Games,
    limits: Limits,
    scores: int,
    attacks: int = 0,
    by_ranks: bool = True,
    claim: StatedEpsilon,
) -> GamePlan:
    """Choose the games, and the share of alpha that each spends.

    A game that could pass neither the ledger's claim nor the limit, even if all guesses were right, cannot fail the
    model and spends nothing. Pairs are played only where they can fail it. Where no game can, all of alpha is for the
    tests by ranks, and the bounds that are only reported hold with confidence 1 − alpha together.

    Args:
        pool: Candidates that the template has.
        coins: Whether fair coins decided which canaries were planted.
        ranked: Whether ranks may be among all candidates. Those within a sample bound nothing.
        scores: By how many the model is tested: 2 with a reference.
        attacks, by_ranks: How many attacks are gates, and whether the tests by ranks are one.
        claim: What is claimed for the records of a canary together.

    Raises:
        UsageError: There are fewer canaries, or candidates, than the games were set for.
    """
    planted, ceiling = sum(target.planted for target in targets), _ceiling(claim, limits)
    game, rules = partial(Game, claim=claim), list[Callable[..., Game]]()
    if coins and len(targets) >= 2:
        guesses = _guesses(len(targets), games)
        rules.append(partial(game, method="in-out", canaries=len(targets), guesses=guesses))
    if planted and ranked:
        top = _top(pool, games)
        rules.append(partial(game, method="rank", canaries=planted, guesses=planted, pool=pool, top=top))
    pairs = partial(game, method="pair", canaries=planted, guesses=planted)

    def plan(chosen: Sequence[Callable[..., Game]]) -> tuple[GamePlan, Game | None]:
        """The plan for these games, and the last of them if it can fail the model."""
        split = partial(split_alpha, limits.alpha, scores=scores, canaries=planted, attacks=attacks, ranks=by_ranks)
        levels = split(bounds=len(chosen) if ceiling < inf else 0)
        level = levels.bound if ceiling < inf else limits.alpha / max(1, len(rules))
        planned = [rules_of(level=level) for rules_of in chosen]
        able = [game for game in planned if game.attainable > ceiling]
        last = planned[-1] if able and able[-1] is planned[-1] else None
        return GamePlan(games=tuple(planned), levels=levels if able else split(bounds=0)), last

    with_pairs, able = plan([*rules, pairs]) if planted else plan(rules)
    return with_pairs if able is not None and able.method == "pair" else plan(rules)[0]


def play_games(
    plan: GamePlan, ranks: Sequence[Rank], targets: Sequence[Target], pairs: tuple[Scores, Scores] | None
) -> tuple[EpsilonBound, ...]:
    """The bound that each planned game proves. Where a rank is within a sample, `rank` is not played.

    Args:
        ranks: By the score that is judged: the ratio where there is a reference, else log p.
        pairs: The same score of each canary and of its mirror image, shape [targets] each; None where they have none.
    """
    planted = [i for i, target in enumerate(targets) if target.planted]
    bounds = []
    for game in plan.games:
        if game.method == "in-out":
            guesses = guess_coins([rank.exposure for rank in ranks], game.guesses)
            bounds.append(_bound(game, sum(targets[i].planted == inside for i, inside in guesses)))
        elif game.method == "rank" and all(ranks[i].pool == game.pool for i in planted):
            # The same share of each stratum is named, so K candidates at most.
            named = (ranks[i].stratum_rank_max <= game.top * ranks[i].stratum_size // game.pool for i in planted)
            bounds.append(_bound(game, sum(named)))
        elif game.method == "pair" and pairs is not None:
            own, mirrored = (scores[planted] for scores in pairs)
            bounds.append(_bound(game, int((own > mirrored).sum())))  # a tie is a wrong guess
    return tuple(bounds)


def mirror(index: int, pool: int) -> int:
    """The other of a pair. The candidate in the middle of an odd pool is its own, and its pair is never won."""
    return pool - 1 - index


def _guesses(canaries: int, games: Games) -> int:
    guesses = 2 * max(1, canaries // 4) if games.guesses is None else games.guesses
    if guesses > canaries:
        raise UsageError(f"{guesses} guesses cannot be made of {canaries} canaries.", "Lower run.coin-guesses.")
    return guesses


def _top(pool: int, games: Games) -> int:
    top = isqrt(pool) if games.top is None else games.top
    if top >= pool:
        raise UsageError(f"{top} of {pool} candidates cannot be named.", "Lower run.rank-guesses.")
    return top


def _ceiling(claim: StatedEpsilon, limits: Limits) -> float:
    """The ε above which a bound fails the model; infinite if no bound can."""
    claimed = inf if claim.epsilon is None else claim.epsilon
    return min(claimed, inf if limits.max_epsilon_lower_bound is None else limits.max_epsilon_lower_bound)


def _bound(game: Game, correct: int) -> EpsilonBound:
    claim, attainable, epsilon = game.claim, game.attainable, game.bound(correct)
    return copy_fields(
        EpsilonBound,
        game,
        claim,
        epsilon=epsilon,
        confidence=1 - game.level,
        correct=correct,
        top=game.top if game.method == "rank" else None,
        claim=claim.epsilon,
        finding=_finding(epsilon, attainable, claim.epsilon),
    )


def _finding(
    bound: float, attainable: float, claim: float | None
) -> Literal["refuted", "not-refuted", "inconclusive", "no-claim"]:
    if claim is None:
        return "no-claim"
    if attainable <= claim:
        return "inconclusive"
    return "refuted" if bound > claim else "not-refuted"
