"""Whole audits of models that have learnt nothing, each as the product judges it, without a model.

Ranks are uniform and coins fair, as for any model whose scores know nothing of either, and each score has ranks of its
own, which is worse for a union of tests than ranks that agree. The ledger is true: it claims ε = 0 and δ = 0 for all
records of a canary, and nothing was learnt.
"""

from collections.abc import Callable
from functools import cache
from math import log2

import numpy as np
from numpy.typing import NDArray

from atdp_cli.audit.canary import Target
from atdp_cli.audit.epsilon import GamePlan, Games, plan_games, play_games
from atdp_cli.audit.exposure import Rank
from atdp_cli.audit.results import Audit
from atdp_cli.audit.stated_epsilon import StatedEpsilon
from atdp_cli.audit.verdict import Limits, judge

POOL = 100_000
TOP = 10_000
CANARIES = 400
NOTHING = StatedEpsilon(epsilon=0.0, delta=0.0, scope="selective")

PlanOf = Callable[[int], GamePlan]
"""What is planned, by how many canaries are planted."""


def plan_by_planted(alpha: float, *, coins: bool, scores: int) -> PlanOf:
    """The product's plan for a ledger that claims nothing was learnt."""

    @cache
    def plan(planted: int) -> GamePlan:
        return plan_games(
            [Target(index=0, repeats=1, planted=number < planted) for number in range(CANARIES)],
            pool=POOL,
            coins=coins,
            ranked=True,
            games=Games(top=TOP),
            limits=Limits(alpha=alpha),
            scores=scores,
            claim=NOTHING,
        )

    return plan


def null_audits(audits: int, alpha: float, *, coins: bool, scores: int, plan: PlanOf, seed: int) -> list[Audit]:
    """So many audits of models that have learnt nothing."""
    dice = np.random.default_rng(seed)
    return [_null_audit(dice, alpha, coins=coins, scores=scores, plan_of=plan) for _ in range(audits)]


def _null_audit(dice: np.random.Generator, alpha: float, *, coins: bool, scores: int, plan_of: PlanOf) -> Audit:
    planted = dice.integers(2, size=CANARIES) == 1 if coins else np.ones(CANARIES, dtype=np.bool_)
    targets = [Target(index=0, repeats=1, planted=bool(coin)) for coin in planted]
    plain, *ratio = (uniform_ranks(dice.integers(1, POOL + 1, size=CANARIES)) for _ in range(scores))
    plan = plan_of(int(planted.sum()))
    bounds = play_games(
        plan, ratio[0] if ratio else plain, targets, (dice.normal(size=CANARIES), dice.normal(size=CANARIES))
    )
    return judge(
        "null",
        plain,
        ratio[0] if ratio else None,
        targets,
        pool=POOL,
        levels=plan.levels,
        epsilon=bounds,
        limits=Limits(alpha=alpha),
    )


def uniform_ranks(ranks: NDArray[np.int64]) -> list[Rank]:
    """Ranks among candidates that do not tie, as `rank_of` gives them."""
    return [
        Rank(
            rank_min=rank,
            rank_max=rank,
            pool=POOL,
            stratum_rank_min=rank,
            stratum_rank_max=rank,
            stratum_size=POOL,
            exposure=log2(POOL / rank),
            exposure_plain=log2(POOL / rank),
            exposure_per_token=log2(POOL / rank),
            p_value=min(1.0, 2 * min(rank, POOL - rank + 1) / POOL),
            tied=False,
        )
        for rank in ranks.tolist()
    ]
