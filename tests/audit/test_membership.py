"""Membership scores and their measures against naive oracles, simulation, and models with and without memory."""

from collections.abc import Callable
from math import floor, log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, norm

from atdp_cli.audit.attacks.membership import RecordScores, infer_membership, membership, score_records
from atdp_cli.errors import RunError, UsageError

from .conftest import gpt2, llama

Scores = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Scores]


def records_of(seed: int, count: int, *, vocabulary: int = 20, shortest: int = 2, longest: int = 9) -> Any:
    dice = np.random.default_rng(seed)
    return [dice.integers(vocabulary, size=dice.integers(shortest, longest + 1)) for _ in range(count)]


def naive(model: Any, record: Any, share: float) -> tuple[float, float]:
    """log p and Min-K%++ by loops over tokens and vocabulary, in float64."""
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(record)[None], use_cache=False).logits[0]
    log_p, z = 0.0, []
    for position, token in enumerate(record[1:].tolist()):
        row = [float(value) for value in logits[position].double()]
        total = sum(np.exp(row))
        own = [value - log(total) for value in row]
        mean = sum(np.exp(value) * value for value in own)
        deviation = sqrt(sum(np.exp(value) * (value - mean) ** 2 for value in own))
        log_p += own[token]
        z.append((own[token] - mean) / deviation)
    lowest = sorted(z)[: max(1, floor(share * len(z)))]
    return log_p, sum(lowest) / len(lowest)


@pytest.mark.parametrize("family", [gpt2, llama])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 1.0])
def test_scores_are_those_of_loops_over_tokens(family: Any, share: float) -> None:
    model = family(20).double()
    records = records_of(0, 30)
    actual = score_records(model, records, share=share)
    expected = np.array([naive(model, record, share) for record in records])
    assert np.abs(actual.log_p - expected[:, 0]).max() < 1e-9
    assert np.abs(actual.min_k - expected[:, 1]).max() < 1e-9
    single = score_records(family(20), records, share=share)
    assert np.abs(single.log_p - expected[:, 0]).max() < 1e-3
    assert np.abs(single.min_k - expected[:, 1]).max() < 1e-3


def test_a_record_scores_alike_whatever_it_is_batched_with(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gpt2(20).double()
    records = records_of(1, 40)
    together = score_records(model, records)
    for room in (20 * 8, 20 * 8 * 11):  # one record, one position at a time; then a few
        monkeypatch.setattr("atdp_cli.audit.attacks.membership._LOGITS", room)
        apart = score_records(model, records)
        assert np.abs(apart.log_p - together.log_p).max() < 1e-10
        assert np.abs(apart.min_k - together.min_k).max() < 1e-10


def test_a_uniform_model_says_nothing() -> None:
    model = gpt2(20, tie_word_embeddings=False)
    with torch.no_grad():
        model.lm_head.weight.zero_()
    records = records_of(2, 10)
    actual = score_records(model, records)
    assert actual.log_p == pytest.approx([-(len(record) - 1) * log(20) for record in records])
    assert not actual.min_k.any()


def brute_force(scores: Scores, inside: Any) -> float:
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[inside] for b in scores[~inside]]
    return float(sum(pairs) / len(pairs))


coins_and_scores = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), max_size=40)


@settings(max_examples=300, deadline=None)
@given(coins_and_scores)
def test_the_auc_is_the_share_of_ordered_pairs(drawn: list[tuple[bool, int]]) -> None:
    inside = np.array([coin for coin, _ in drawn], dtype=np.bool_)
    scores = np.array([score for _, score in drawn], dtype=np.float64)
    actual = membership("loss", scores, inside)
    assert (actual.members, actual.non_members) == (inside.sum(), (~inside).sum())
    if inside.all() or not inside.any():
        assert actual.auc is actual.auc_low is actual.auc_high is actual.tpr_at_1_fpr is None
        return
    assert actual.auc is not None
    assert actual.auc_low is not None
    assert actual.auc_high is not None
    assert actual.auc == pytest.approx(brute_force(scores, inside), abs=1e-12)
    assert 0 <= actual.auc_low <= actual.auc <= actual.auc_high <= 1
    assert actual.auc_high - actual.auc_low > 0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 40), st.sampled_from([3, 1000]))
def test_the_bounds_solve_wilsons_equation(seed: int, m: int, n: int, values: int) -> None:
    """(bound - auc)^2 = z^2 bound (1 - bound) V / (auc (1 - auc)), with V from a matrix of all pairs."""
    dice = np.random.default_rng(seed)
    members, others = dice.integers(values, size=m) + values // 5, dice.integers(values, size=n)
    pairs = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    auc = pairs.mean()
    assume(0 < auc < 1)
    placements = pairs.mean(axis=1), pairs.mean(axis=0)
    delong = auc * (1 - auc) / min(m, n)  # the most that it can be, where there is no estimate
    if min(m, n) > 1 and any(np.unique(placement).size > 1 for placement in placements):
        delong = sum(placement.var(ddof=1) / placement.size for placement in placements)
    both = (m + n) / 2 - 1
    exponential = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2  # Hanley and McNeil's Q1 and Q2
    alike = (auc * (1 - auc) + both * sum(exponential)) / (m * n)
    actual = membership("loss", np.concatenate([members, others]).astype(np.float64), np.arange(m + n) < m)
    for bound in (actual.auc_low or 0.0, actual.auc_high or 1.0):
        spread = bound * (1 - bound) * max(delong, alike) / (auc * (1 - auc))
        assert (bound - auc) ** 2 == pytest.approx(norm.ppf(0.975) ** 2 * spread, rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(coins_and_scores)
def test_swapping_members_and_others_mirrors_the_interval(drawn: list[tuple[bool, int]]) -> None:
    inside = np.array([coin for coin, _ in drawn], dtype=np.bool_)
    scores = np.array([score for _, score in drawn], dtype=np.float64)
    result, other = membership("loss", scores, inside), membership("loss", scores, ~inside)
    rescaled = membership("loss", np.exp(scores), inside)
    if result.auc is not None:
        mirrored = (other.auc, other.auc_high, other.auc_low)
        for mine, theirs in zip((result.auc, result.auc_low, result.auc_high), mirrored, strict=True):
            assert mine == pytest.approx(1 - (theirs or 0.0), abs=1e-12)
    assert rescaled == result, "only the order of scores counts"


def shifted(by: float) -> Draw:
    return lambda dice, size: dice.normal(by, 1, size)


def spread(by: float) -> Draw:
    return lambda dice, size: dice.normal(0, by, size)


def some_remembered(share: float, by: float) -> Draw:
    return lambda dice, size: dice.normal(0, 1, size) + by * (dice.random(size) < share)


@pytest.mark.parametrize(("m", "n"), [(10, 10), (30, 30), (100, 100), (20, 200), (200, 20)])
@pytest.mark.parametrize(
    "members", [shifted(0), shifted(1), shifted(2.5), spread(5), some_remembered(0.2, 10), some_remembered(0.9, 6)]
)
def test_the_interval_covers_the_truth_at_least_as_often_as_it_says(members: Draw, m: int, n: int) -> None:
    """Rejects a coverage of 95 % only beyond chance; by design the interval is wider in some of these cases."""
    dice = np.random.default_rng(m + n)
    truth = float(np.mean(members(dice, 200_000) > dice.normal(size=200_000)))
    inside = np.arange(m + n) < m
    covered, samples = 0, 400
    for _ in range(samples):
        actual = membership("loss", np.concatenate([members(dice, m), dice.normal(size=n)]), inside)
        covered += (actual.auc_low or 0) <= truth <= (actual.auc_high or 0)
    assert binomtest(covered, samples, 0.95, alternative="less").pvalue > 1e-3


def test_the_interval_narrows_to_the_truth() -> None:
    dice = np.random.default_rng(0)
    for size, width in ((100, 0.2), (2500, 0.04)):
        actual = membership("loss", dice.normal(size=2 * size), np.arange(2 * size) < size)
        assert (actual.auc_high or 1) - (actual.auc_low or 0) < width


@pytest.mark.parametrize(("outs", "resolvable"), [(99, False), (100, True), (101, True)])
def test_a_false_positive_rate_of_one_percent_needs_a_hundred_others(outs: int, resolvable: bool) -> None:
    scores = np.concatenate([np.full(3, 2.0), np.linspace(0, 1, outs)])
    actual = membership("loss", scores, np.arange(3 + outs) < 3)
    assert actual.tpr_at_1_fpr == (1.0 if resolvable else None)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(100, 420), st.integers(1, 60), st.sampled_from([5, 1000]))
def test_no_threshold_within_one_percent_catches_more(seed: int, outs: int, ins: int, values: int) -> None:
    dice = np.random.default_rng(seed)
    members = dice.integers(values, size=ins) + values // 3
    others = dice.integers(values, size=outs)
    actual = membership("loss", np.concatenate([members, others]).astype(np.float64), np.arange(ins + outs) < ins)
    allowed = [t for t in range(-1, 2 * values) if 100 * np.count_nonzero(others > t) <= outs]
    assert actual.tpr_at_1_fpr == max(np.mean(members > t) for t in allowed)


def test_the_attacks_are_named_and_the_reference_is_subtracted() -> None:
    inside = np.array([True, True, False, False])
    scores = RecordScores(log_p=np.array([-9.0, -2.0, -1.0, -5.0]), min_k=np.array([1.0, 2.0, 0.0, -1.0]))
    reference = RecordScores(log_p=np.array([-14.0, -8.0, -1.0, -5.0]), min_k=np.zeros(4))
    assert [(result.attack, result.auc) for result in infer_membership(scores, inside)] == [
        ("loss", 0.25),
        ("min-k++", 1.0),
    ]
    actual = infer_membership(scores, inside, reference=reference)
    assert [(result.attack, result.auc) for result in actual] == [("loss", 0.25), ("reference", 1.0), ("min-k++", 1.0)]


@pytest.mark.ci
def test_members_that_a_model_memorised_are_distinguished_from_others() -> None:
    """By every score: near 1 after training, and by none before, whatever the model."""
    records = records_of(3, 40, shortest=7)
    inside = np.random.default_rng(3).random(40) < 0.5
    model = gpt2(20, initializer_range=0.02)
    base = score_records(model, records)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        for record in (records[i] for i in np.flatnonzero(inside)):
            ids = torch.from_numpy(record)[None]
            (model(input_ids=ids, labels=ids).loss / inside.sum()).backward()
        optimizer.step()
    actual = infer_membership(score_records(model, records), inside, reference=base)
    assert [result.attack for result in actual] == ["loss", "reference", "min-k++"]
    for result in actual:
        assert result.auc is not None
        assert result.auc_low is not None
        assert result.auc > 0.95
        assert result.auc_low > 0.5


@pytest.mark.ci
def test_an_untrained_model_tells_no_members_apart() -> None:
    covered = dict.fromkeys(("loss", "reference", "min-k++"), 0)
    seeds = 60
    for seed in range(seeds):
        records = records_of(seed, 60, shortest=5)
        inside = np.random.default_rng(1000 + seed).random(60) < 0.5
        scores, base = (score_records(gpt2(20, seed=number), records) for number in (seed, 999))
        for result in infer_membership(scores, inside, reference=base):
            covered[result.attack] += (result.auc_low or 0) <= 0.5 <= (result.auc_high or 0)
    for count in covered.values():
        assert binomtest(count, seeds, 0.95, alternative="less").pvalue > 1e-3


def test_what_cannot_be_scored_is_refused() -> None:
    model = gpt2(20, tie_word_embeddings=False)
    with pytest.raises(UsageError, match="nothing to predict"):
        score_records(model, [np.array([1, 2]), np.array([1])])
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(UsageError, match="share"):
            score_records(model, records_of(0, 2), share=share)
    with torch.no_grad():
        model.lm_head.weight[5, 5] = float("inf")
    with pytest.raises(RunError, match="NaN or infinite"):
        score_records(model, records_of(0, 2))
