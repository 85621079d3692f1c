"""What a ledger claims of all records of a canary, and when it can be tested."""

import math
from typing import Any

import pytest

from atdp_cli.audit.stated_epsilon import (
    DELTA,
    NO_LEDGER,
    DetectorInvariance,
    StatedEpsilon,
    group_epsilons,
    stated_epsilon,
)
from atdp_cli.privacy.accountant import epsilon_group
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger, SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.plan import CorpusFacts, make_plan
from atdp_cli.training.recipe import ATDP, DECOYS, DP_SGD, FITTED_DECOYS, NO_DP, REDACTED, Recipe, Train
from tests.privacy.relations import plain, relation, votes

UNVOTED, VOTED, UNLIKE = (
    DetectorInvariance(unlike=None, voted=False),
    DetectorInvariance(unlike=None),
    DetectorInvariance(unlike="they differ"),
)


def ledger_of(recipe: Recipe, **fields: Any) -> Ledger:
    corpus = CorpusFacts(records=400, relation=hypothetical("line", fields.pop("tier", "low-entity")))
    return make_plan(recipe, corpus, delta=1e-6, checkpoint_history=fields.pop("checkpoint_history", "public")).ledger


def claim(recipe: Recipe, alike: DetectorInvariance, *, repeats: int = 10, **at: Any) -> StatedEpsilon:
    return stated_epsilon(ledger_of(recipe, **at), repeats=repeats, invariance=lambda: alike)


@pytest.mark.parametrize("recipe", [REDACTED, DECOYS, FITTED_DECOYS])
@pytest.mark.parametrize("repeats", [1, 10, 10_000])
def test_what_has_no_votes_has_epsilon_0_for_any_number_of_records(recipe: Recipe, repeats: int) -> None:
    actual = claim(recipe, UNVOTED, repeats=repeats)
    assert (actual.epsilon, actual.delta, actual.scope, actual.missing) == (0.0, 0.0, "selective", None)


@pytest.mark.parametrize("repeats", [1, 3])
def test_what_has_votes_has_the_epsilon_of_the_release(repeats: int) -> None:
    """One Gaussian release that replacing k records moves by k√2 sensitivities: its δ is in closed form."""
    actual = claim(FITTED_DECOYS, VOTED, repeats=repeats)
    [stage] = FITTED_DECOYS
    assert isinstance(stage, Train)
    assert stage.release_noise_multiplier is not None
    assert actual.epsilon is not None
    moved = repeats * math.sqrt(2) / stage.release_noise_multiplier

    def delta_at(epsilon: float) -> float:
        """Balle and Wang 2018, theorem 8."""

        def below(x: float) -> float:
            return 0.5 * math.erfc(-x / math.sqrt(2))

        return below(moved / 2 - epsilon / moved) - math.exp(epsilon) * below(-moved / 2 - epsilon / moved)

    assert delta_at(actual.epsilon) <= actual.delta == 1e-6
    assert delta_at(actual.epsilon * 0.98) > actual.delta
    assert actual.scope == "selective"


def test_a_group_s_epsilon_is_the_ledger_s_own_for_one_record_and_grows_with_the_records() -> None:
    ledger = ledger_of(DP_SGD)
    [whole] = [each for each in guarantees(ledger) if each.scope == "end_to_end"]
    groups = group_epsilons(ledger, [10, 1, 3, 3])
    assert [each.records for each in groups] == [1, 3, 10]
    actual = [each.epsilon for each in groups if each.epsilon is not None]
    assert actual[0] == whole.epsilon
    assert actual == sorted(set(actual))
    assert len(actual) == 3
    assert {(each.delta, each.missing) for each in groups} == {(1e-6, None)}


@pytest.mark.parametrize(
    ("ledger", "missing"),
    [
        (None, NO_LEDGER),
        (ledger_of(NO_DP), "without protection (stage no-dp)"),
        (ledger_of(FITTED_DECOYS), "without protection (stage fitted-decoys)"),
        (ledger_of(DP_SGD, checkpoint_history="unknown"), "past is unknown"),
    ],
)
def test_where_no_finite_epsilon_holds_end_to_end_a_group_has_none_and_why(ledger: Ledger | None, missing: str) -> None:
    [group] = group_epsilons(ledger, [4])
    assert group.epsilon is None
    assert group.missing is not None
    assert missing in group.missing


def test_noise_on_gradients_is_in_the_claim_even_where_nothing_has_votes() -> None:
    ledger = ledger_of(FITTED_DECOYS + ATDP)
    steps = [event for event in ledger.events if isinstance(event, SubsampledGaussian)]
    actual = claim(FITTED_DECOYS + ATDP, UNVOTED, repeats=2)
    expected = epsilon_group(steps, 1e-6, records=2, grid=ledger.grid, adjacency="replace-one")
    assert actual.epsilon == pytest.approx(expected)
    voted = claim(FITTED_DECOYS + ATDP, VOTED, repeats=2)
    assert voted.epsilon is not None
    assert voted.epsilon > expected


def test_another_release_is_never_left_out() -> None:
    share = votes(3.0).model_copy(update={"statistic": "another", "relation": relation("none")})
    ledger = Ledger(
        unit="line", checkpoint_history="public", records=9, delta=1e-6, grid=1e-3, events=(share, plain("shape"))
    )
    actual = stated_epsilon(ledger, repeats=1, invariance=lambda: UNVOTED)
    assert actual.epsilon is not None
    assert actual.epsilon > 0


@pytest.mark.parametrize(
    ("recipe", "alike", "at", "missing"),
    [
        (FITTED_DECOYS, UNLIKE, {}, "they differ"),
        (FITTED_DECOYS, UNVOTED, {"checkpoint_history": "unknown"}, "trained on the corpus without protection"),
        (FITTED_DECOYS, UNVOTED, {"tier": "high-contextual"}, "trained on the corpus without protection"),
        (NO_DP, UNVOTED, {}, "trained on the corpus without protection"),
        (NO_DP + DECOYS, UNVOTED, {}, "trained on the corpus without protection"),
    ],
)
def test_where_nothing_is_claimed_it_says_why(
    recipe: Recipe, alike: DetectorInvariance, at: dict[str, Any], missing: str
) -> None:
    actual = claim(recipe, alike, **at)
    assert (actual.epsilon, actual.scope) == (None, None)
    assert actual.missing is not None
    assert missing in actual.missing


def test_without_a_ledger_nothing_is_claimed() -> None:
    actual = stated_epsilon(None, repeats=1, invariance=lambda: UNVOTED)
    assert actual == StatedEpsilon(epsilon=None, delta=DELTA, missing=NO_LEDGER)


def test_what_holds_end_to_end_is_tested_whatever_the_canaries_are() -> None:
    """The candidates are not even looked at."""

    def never() -> DetectorInvariance:
        raise AssertionError

    ledger = ledger_of(DP_SGD)
    actual = stated_epsilon(ledger, repeats=1, invariance=never)
    assert actual.scope == "end_to_end"
    assert actual.epsilon is not None
    assert 0 < actual.epsilon < math.inf
