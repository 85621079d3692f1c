"""Alpha is split once: whole audits of models that have learnt nothing fail at most so often.

At an alpha of 0.2, in 800 audits by one score without coins, tests and bounds together failed 0.17 of them. At commit
42ac8e0, where the tests had all of alpha and the bounds all of it again, it was 0.29.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.audit.canary import Target
from atdp_cli.audit.epsilon import GamePlan, Games, plan_games
from atdp_cli.audit.hypothesis_tests import MANY, Levels, power, split_alpha
from atdp_cli.audit.results import MEMORISED_BITS, MIN_POWER, Audit, Verdict
from atdp_cli.audit.stated_epsilon import StatedEpsilon
from atdp_cli.audit.verdict import Limits
from tests.audit.nulls import PlanOf, null_audits, plan_by_planted

ALPHA = 0.2
"""Large, so that few audits tell it from a sum of two."""

KIND = ("audits", "coins", "scores")
DEEP = [
    pytest.param(audits, coins, scores, marks=pytest.mark.deep)
    for audits, coins, scores in ((150, True, 2), (400, True, 2), (4000, False, 1), (4000, True, 1), (4000, True, 2))
]


def too_often(audits: list[Audit]) -> bool:
    """Whether more fail than alpha and three standard errors allow."""
    failed = sum(audit.verdict is Verdict.FAIL for audit in audits) / len(audits)
    return failed > ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / len(audits))


@pytest.mark.ci
@pytest.mark.parametrize(KIND, [(400, False, 1), *DEEP])
def test_a_model_that_learnt_nothing_fails_with_probability_alpha_at_most(
    audits: int, coins: bool, scores: int
) -> None:
    plan = plan_by_planted(ALPHA, coins=coins, scores=scores)
    actual = null_audits(audits, ALPHA, coins=coins, scores=scores, plan=plan, seed=1)
    assert not too_often(actual)
    assert {bound.finding for audit in actual for bound in audit.epsilon} == {"refuted", "not-refuted"}
    assert any(audit.combined.fisher_p <= audit.combined.level for audit in actual if audit.combined.fisher_p)


@pytest.mark.deep
@pytest.mark.parametrize(KIND, [(400, False, 1), *DEEP])
def test_tests_and_bounds_with_an_alpha_each_fail_it_too_often(audits: int, coins: bool, scores: int) -> None:
    """As the split was before, for the games that there were; so the simulation would notice."""
    plan = spent_twice(plan_by_planted(ALPHA, coins=coins, scores=scores), scores)
    assert too_often(null_audits(audits, ALPHA, coins=coins, scores=scores, plan=plan, seed=1))


def spent_twice(plan_of: PlanOf, scores: int) -> PlanOf:
    """Plans that give the tests all of alpha, and the bounds all of it again."""

    def plan(planted: int) -> GamePlan:
        games = [game for game in plan_of(planted).games if game.method != "pair"]
        return GamePlan(
            games=tuple(replace(game, level=ALPHA / len(games)) for game in games),
            levels=Levels(test=ALPHA / 2 / scores, bound=0, attack=0),
        )

    return plan


@given(
    st.floats(1e-9, 0.999),
    st.fixed_dictionaries(
        {
            "scores": st.integers(1, 2),
            "bounds": st.integers(0, 5),
            "canaries": st.integers(0, 1000),
            "attacks": st.integers(0, 3),
            "ranks": st.booleans(),
        }
    ),
)
def test_the_levels_of_all_that_can_fail_a_model_sum_to_alpha(alpha: float, able: dict[str, Any]) -> None:
    levels = split_alpha(alpha, **able)
    by_ranks = 2 * able["scores"] * levels.test if able["ranks"] else 0.0
    if able["ranks"] or able["attacks"]:
        assert by_ranks + able["bounds"] * levels.bound + able["attacks"] * levels.attack == pytest.approx(alpha)
    assert min(levels.test, levels.bound, levels.attack) > 0


@pytest.mark.parametrize("attacks", [0, 3])
@pytest.mark.parametrize("canaries", [10, MANY, 100])
def test_the_tests_keep_the_power_that_a_pass_needs(canaries: int, attacks: int) -> None:
    levels = split_alpha(0.01, scores=2, bounds=3, canaries=canaries, attacks=attacks)
    assert power((10_000,) * canaries, levels.test, mean_exposure=MEMORISED_BITS) >= MIN_POWER


def planned(claimed: float | None, *, canaries: int = 40, limit: float | None = None) -> GamePlan:
    return plan_games(
        [Target(index=0, repeats=1)] * canaries,
        pool=10_000,
        coins=False,
        ranked=True,
        games=Games(),
        limits=Limits(alpha=0.01, max_epsilon_lower_bound=limit),
        scores=1,
        claim=StatedEpsilon(epsilon=claimed, delta=0.0),
    )


def test_what_cannot_fail_a_model_spends_nothing() -> None:
    """No claim, and a claim that no guess could refute."""
    for plan in (planned(None), planned(50.0), planned(None, limit=50.0)):
        assert [game.method for game in plan.games] == ["rank"]
        assert plan.levels.test == 0.01 / 2
    for plan in (planned(0.0), planned(None, limit=0.0)):
        assert [game.method for game in plan.games] == ["rank", "pair"]
        spent = 2 * plan.levels.test + sum(game.level for game in plan.games)
        assert spent == pytest.approx(0.01)


def test_pairs_are_played_only_where_they_can_refute() -> None:
    assert [game.method for game in planned(0.0, canaries=10).games] == ["rank"]
    assert [game.method for game in planned(4.0).games] == ["rank"]
