"""The verdict: what fails, what passes, and what cannot be told."""

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import rank_of
from atdp_cli.audit.hypothesis_tests import power
from atdp_cli.audit.results import Audit, Verdict
from atdp_cli.audit.verdict import Limits
from atdp_cli.cli.audit_canary_screen import exit_code
from atdp_cli.errors import RunError, UsageError
from tests.audit.scores import audit_scores

POOL = 20_000
SCORES = np.random.default_rng(1).normal(-12, 3, POOL)
LENGTHS = np.full(POOL, 4, dtype=np.int32)
BY_RANK = np.argsort(-SCORES)
ORDINARY = [int(BY_RANK[int(share * POOL)]) for share in np.linspace(0.05, 0.95, 10)]
FIVE_BITS = [int(BY_RANK[POOL // 32 + step]) for step in range(10)]
OTHER = np.random.default_rng(2).normal(-12, 3, POOL)


def audit(indices: Sequence[int], scores: NDArray[np.float64] = SCORES, /, **settings: Any) -> Audit:
    chosen = [Target(index=index, repeats=10) for index in indices]
    limits = Limits(**{name: settings.pop(name) for name in ("alpha", "max_exposure") if name in settings})
    return audit_scores("model", scores, LENGTHS[: scores.size], chosen, limits=limits, **settings)


def test_canaries_placed_by_chance_pass() -> None:
    actual = audit(ORDINARY)
    assert actual.verdict is Verdict.PASS
    assert actual.combined.level == 0.005
    assert actual.combined.power is not None
    assert actual.combined.power > 0.8
    assert any("base model" in notice for notice in actual.notices)
    assert not actual.tested_against_base
    assert actual.reasons[0] == "The canaries rank where chance would put them."
    assert actual.canaries[0].exposure_ratio is None


def test_a_pass_says_what_it_would_have_found_and_what_it_leaves_possible() -> None:
    """It accepts a null, so it has to say how large a memory it would have missed."""
    actual = audit(ORDINARY)
    detectable, limit = actual.combined.detectable, actual.combined.mean_limit
    assert detectable is not None
    assert limit is not None
    assert power((POOL,) * 10, 0.005, mean_exposure=detectable) == pytest.approx(0.8, abs=0.02)
    assert (actual.combined.mean_exposure or 0) < limit < np.log2(POOL)
    assert f"a mean exposure of {detectable:.1f} bits with probability 0.8" in actual.reasons[1]
    assert f"at most {np.ceil(10 * limit) / 10:.1f} bits, if one is remembered independently" in actual.reasons[1]
    both = audit(ORDINARY, reference_scores=OTHER)
    assert both.verdict is Verdict.PASS
    assert both.combined.mean_limit is not None
    assert both.combined.mean_limit > limit, "the two limits share the confidence"
    assert f"{np.ceil(10 * (both.combined.mean_limit_ratio or 0)) / 10:.1f} by the ratio" in both.reasons[1]
    by_limit = audit([ORDINARY[4]], calibrated=False, max_exposure=10)
    assert (by_limit.verdict, by_limit.combined.mean_limit) == (Verdict.PASS, None), "nobody drew that secret"


def test_more_canaries_leave_less_possible() -> None:
    spread = [[int(BY_RANK[int(share * POOL)]) for share in np.linspace(0.05, 0.95, count)] for count in (10, 50)]
    few, many = (audit(indices).combined for indices in spread)
    assert (many.mean_limit or 99) < (few.mean_limit or 0)
    assert (many.detectable or 99) < (few.detectable or 0)


def test_with_a_reference_both_scores_are_tested_at_half_the_level() -> None:
    actual = audit(ORDINARY, reference_scores=OTHER)
    assert actual.verdict is Verdict.PASS
    assert actual.combined.level == 0.0025
    assert actual.tested_against_base
    assert actual.notices == ()
    ratio = SCORES - OTHER
    for canary, index in zip(actual.canaries, ORDINARY, strict=True):
        assert (canary.rank_ratio_min, canary.rank_ratio_max) == (np.sum(ratio >= ratio[index]),) * 2
        assert canary.p_value_ratio == rank_of(ratio, LENGTHS, index).p_value


@pytest.mark.parametrize("place", [0, -1], ids=["most likely", "least likely"])
def test_one_canary_at_either_end_fails(place: int) -> None:
    actual = audit([*ORDINARY[:9], int(BY_RANK[place])])
    assert actual.verdict is Verdict.FAIL
    assert "1 of 10 canaries" in actual.reasons[0]
    assert actual.canaries[9].p_value == 2 / POOL
    assert actual.canaries[9].holm_p == pytest.approx(20 / POOL)


@pytest.mark.parametrize("sign", [1, -1], ids=["most likely", "least likely"])
def test_canaries_driven_to_an_end_fail_together(sign: int) -> None:
    actual = audit([int(index) for index in BY_RANK[::sign][:10]])
    assert actual.verdict is Verdict.FAIL
    assert len(actual.reasons) == 2


def test_a_little_memory_of_each_fails_by_fisher_alone() -> None:
    actual = audit(FIVE_BITS)
    assert actual.verdict is Verdict.FAIL
    assert [("Fisher" in reason) for reason in actual.reasons] == [True]
    assert actual.combined.mean_exposure == pytest.approx(5, abs=0.1)


def test_memory_that_only_the_ratio_shows_fails() -> None:
    """The canaries are ordinary by log p, and all far likelier than to the reference."""
    reference = SCORES + np.random.default_rng(3).normal(0, 0.5, POOL)
    reference[ORDINARY] = SCORES[ORDINARY] - 2
    assert audit(ORDINARY).verdict is Verdict.PASS
    actual = audit(ORDINARY, reference_scores=reference)
    assert actual.verdict is Verdict.FAIL
    assert all("ratio" in reason for reason in actual.reasons)


def test_a_limit_fails_whatever_the_tests_say() -> None:
    assert audit(ORDINARY, max_exposure=4.4).verdict is Verdict.PASS
    actual = audit(ORDINARY, max_exposure=4.3)
    assert actual.verdict is Verdict.FAIL
    assert actual.reasons == ("A canary has an exposure of 4.32 bits; the limit is 4.3.",)
    by_ratio = audit(ORDINARY, reference_scores=OTHER, max_exposure=4.4)
    most = by_ratio.combined.max_exposure
    assert most is not None
    assert (by_ratio.verdict is Verdict.FAIL) == (most > 4.4)


def test_without_canaries_nothing_is_said() -> None:
    actual = audit([])
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert actual.combined.fisher_p is None


def test_a_model_that_scores_all_alike_is_inconclusive() -> None:
    actual = audit(ORDINARY, np.full(POOL, -3.0))
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert "score the same" in actual.reasons[0]


def test_the_model_as_its_own_reference_is_inconclusive() -> None:
    actual = audit(ORDINARY, reference_scores=SCORES.copy())
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert "reference" in actual.reasons[0]


def test_a_small_pool_is_inconclusive() -> None:
    actual = audit(range(0, 1000, 100), SCORES[:1000])
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert "longer slot" in actual.reasons[0]


def test_a_small_pool_in_which_all_canaries_together_have_power_is_a_notice() -> None:
    actual = audit(range(0, 1000, 25), SCORES[:1000])
    assert actual.combined.power is not None
    assert actual.combined.power > 0.99
    assert actual.verdict is Verdict.PASS
    assert "longer slot" in actual.notices[0]
    assert audit([int(np.argmax(SCORES[:1000]))] * 40, SCORES[:1000]).verdict is Verdict.FAIL


def test_one_canary_in_a_tiny_stratum_spoils_nothing() -> None:
    lengths = LENGTHS.copy()
    lengths[ORDINARY[0]] = 2
    actual = audit_scores("model", SCORES, lengths, [Target(index=i, repeats=1) for i in (*ORDINARY, FIVE_BITS[0])])
    assert actual.verdict is Verdict.PASS
    assert actual.canaries[0].stratum_size == 1
    assert actual.canaries[0].p_value == 1


@pytest.mark.parametrize("count", [1, 3, 5])
def test_few_canaries_cannot_clear_a_model(count: int) -> None:
    actual = audit(ORDINARY[:count])
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert "plant more canaries" in actual.reasons[0]
    memorised = audit([int(BY_RANK[0])] * count)
    assert memorised.verdict is Verdict.FAIL, "they can convict one"
    assert any("plant more canaries" in notice for notice in memorised.notices)


@pytest.mark.parametrize("indices", [ORDINARY, FIVE_BITS])
def test_other_tokens_than_the_trained_ones_are_inconclusive_even_on_failure(indices: list[int]) -> None:
    actual = audit(indices, mismatch="Other tokens.", max_exposure=1.0)
    assert actual.verdict is Verdict.INCONCLUSIVE
    assert actual.reasons[0] == "Other tokens."


def test_a_secret_chosen_by_hand_has_no_p_value_and_the_limit_decides() -> None:
    memorised, ordinary = int(BY_RANK[0]), ORDINARY[4]
    assert audit([memorised], calibrated=False).verdict is Verdict.INCONCLUSIVE
    assert audit([memorised], calibrated=False, max_exposure=10).verdict is Verdict.FAIL
    assert audit([ordinary], calibrated=False, max_exposure=10).verdict is Verdict.PASS
    assert audit([ordinary], calibrated=False, max_exposure=14.3).verdict is Verdict.INCONCLUSIVE
    actual = audit([ordinary], calibrated=False, reference_scores=OTHER)
    assert actual.canaries[0].p_value is actual.canaries[0].holm_p_ratio is actual.combined.power is None
    assert actual.canaries[0].exposure_ratio is not None


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 0.0}, {"alpha": 1.0}, {"alpha": float("nan")}, {"max_exposure": -1.0}, {"max_exposure": float("inf")}],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        audit(ORDINARY, **settings)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_never_reach_a_verdict(bad: float) -> None:
    broken = SCORES.copy()
    broken[3] = bad
    with pytest.raises(RunError):
        audit(ORDINARY, broken)
    with pytest.raises(RunError):
        audit(ORDINARY, reference_scores=broken)


def test_exit_codes_come_in_their_order() -> None:
    codes = {Verdict.ERROR: 3, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4, Verdict.PASS: 0}
    ranked = list(codes)
    for size in range(1, 5):
        for verdicts in permutations(codes, size):
            assert exit_code(verdicts) == codes[min(verdicts, key=ranked.index)]
    assert exit_code([Verdict.PASS] * 3) == 0
    assert exit_code([]) == 4


def test_json_has_the_keys_of_the_schema_and_nothing_that_names_a_secret() -> None:
    actual = audit(ORDINARY, reference_scores=OTHER).model_dump(mode="json")
    assert json.loads(json.dumps(actual, allow_nan=False))["verdict"] == "PASS"
    assert {"model", "verdict", "alpha", "canaries", "combined"} <= set(actual)
    wanted = {"rank_min", "rank_max", "pool", "stratum_size", "exposure", "exposure_ratio", "p_value"}
    assert all(wanted <= set(canary) for canary in actual["canaries"])
    assert "index" not in json.dumps(actual)
