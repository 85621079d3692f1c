"""How often a model that has learnt nothing fails: at most as often as alpha says, by simulation and on real models.

In the simulations sets of canaries are drawn as `draw_secrets` draws them and judged by a shortcut, which is compared
with the real judgement below.
"""

import random
import secrets
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from atdp_cli.audit.canary import Target, parse_template
from atdp_cli.audit.draw import draw_secrets
from atdp_cli.audit.exposure import rank_of
from atdp_cli.audit.pool import Candidates, tokenise
from atdp_cli.audit.rank import Pool, rank_targets
from atdp_cli.audit.results import Verdict
from atdp_cli.audit.trie import build_trie, score_pool
from atdp_cli.audit.verdict import Limits
from atdp_cli.model.windows import encode_record
from tests.audit.conftest import gpt2, llama
from tests.audit.scores import audit_scores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SETS = 100_000
CANARIES = 10


def fails(p_values: Floats, level: float, planted: Bools | None = None) -> Bools:
    """Whether Holm or Fisher rejects at `level`, by the p-values of each set's canaries; shape [sets].

    Args:
        p_values: Shape [sets, canaries].
        planted: Which of them count, of the same shape; None for all.
    """
    inside = np.ones(p_values.shape, dtype=np.bool_) if planted is None else planted
    p = np.where(inside, p_values, 1.0)
    count = inside.sum(axis=1)
    # Fisher's law, chi-squared with 2m degrees of freedom, from scipy; without canaries nothing is rejected.
    bounds = np.array([inf, *(stats.chi2.isf(level, 2 * m) / 2 for m in range(1, p.shape[1] + 1))])
    actual: Bools = (p.min(axis=1) * count <= level) & (count > 0) | (-np.log(p).sum(axis=1) >= bounds[count])
    return actual


def check_size(failed: Bools, alpha: float) -> None:
    """At most alpha and three standard errors, and not 0: a test that never rejects has the right size as well."""
    assert 0 < failed.mean() <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / len(failed))


def pool_of(decimals: int | None) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Lengths, scores and ratios of a pool with three strata; they tie where there are few decimals."""
    dice = np.random.default_rng(7)
    lengths = np.repeat(np.array([3, 2, 4], dtype=np.int32), [8000, 1500, 500])
    scores = dice.normal(-12, 3, lengths.size) - lengths
    ratio = 0.5 * scores + dice.normal(0, 2, lengths.size)
    return (lengths, scores, ratio) if decimals is None else (lengths, scores.round(decimals), ratio.round(decimals))


@pytest.fixture(scope="module", params=[None, 2, 0], ids=["no ties", "some ties", "mostly ties"])
def null_p_values(request: pytest.FixtureRequest) -> Floats:
    """p by both scores of every candidate, shape [2, pool]."""
    lengths, *both = pool_of(request.param)
    return np.array([[rank_of(values, lengths, i).p_value for i in range(lengths.size)] for values in both])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("tested", [1, 2])
def test_a_model_that_learnt_nothing_fails_at_most_alpha_of_the_time(
    null_p_values: Floats, alpha: float, tested: int
) -> None:
    drawn = np.random.default_rng(11).integers(null_p_values.shape[1], size=(SETS, CANARIES))
    check_size(np.any([fails(p[drawn], alpha / 2 / tested) for p in null_p_values[:tested]], axis=0), alpha)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_with_coins_only_what_was_planted_counts_and_the_size_stays(null_p_values: Floats, alpha: float) -> None:
    dice = np.random.default_rng(12)
    drawn = dice.integers(null_p_values.shape[1], size=(SETS, 2 * CANARIES))
    planted = dice.integers(2, size=drawn.shape) == 1
    check_size(np.any([fails(p[drawn], alpha / 4, planted) for p in null_p_values], axis=0), alpha)


def in_sample(lengths: NDArray[np.int32], scores: Floats, own: int) -> Floats:
    """p of each set's canaries, each among the set's sample and itself; shape [sets, canaries].

    Args:
        lengths, scores: Of each set's sample and behind it of its canaries, shape [sets, sample + canaries].
        own: Where the canaries begin.
    """
    # One sorted row of numbers holds all sets and strata: each has a range of its own.
    apart = np.arange(len(scores))[:, None] * 1e4 + lengths * 1e3
    keys = apart + scores
    row = np.sort(keys[:, :own].ravel())
    low, high = (np.searchsorted(row, apart[:, own:] + edge) for edge in (-500, 500))
    at_least = high - np.searchsorted(row, keys[:, own:], "left") + 1
    at_most = np.searchsorted(row, keys[:, own:], "right") - low + 1
    actual: Floats = np.minimum(1.0, 2 * np.minimum(at_least, at_most) / (high - low + 1))
    return actual


FEW_OR_ALL = pytest.mark.parametrize("sets", [SETS // 10, pytest.param(SETS, marks=pytest.mark.ci)])


@FEW_OR_ALL
@pytest.mark.parametrize(("decimals", "alpha"), [(None, 0.01), (0, 0.05)], ids=["no ties", "mostly ties"])
def test_canaries_that_share_one_small_sample_keep_the_size(decimals: int | None, alpha: float, sets: int) -> None:
    """The ranks of one set depend on each other through their sample, all the more the smaller it is."""
    lengths, scores, _ = pool_of(decimals)
    dice, n = np.random.default_rng(13), 1000
    actual = []
    for _ in range(sets // 1000):
        drawn = dice.integers(lengths.size, size=(1000, n + CANARIES))
        actual.append(in_sample(lengths[drawn], scores[drawn], n))
    check_size(fails(np.concatenate(actual), alpha / 2), alpha)


@FEW_OR_ALL
def test_many_canaries_that_share_one_small_sample_keep_the_size(sets: int) -> None:
    """One stratum without ties, where p is closest to uniform. A real sample has a million candidates."""
    dice, n, canaries, alpha = np.random.default_rng(14), 300, 60, 0.05
    failed = []
    for _ in range(sets // 1000):
        scores = dice.normal(size=(1000, n + canaries))
        failed.append(fails(in_sample(np.ones(scores.shape, dtype=np.int32), scores, n), alpha / 2))
    check_size(np.concatenate(failed), alpha)


@pytest.mark.ci
def test_the_simulated_judgement_is_the_real_one() -> None:
    """On sets where memory is common, the shortcuts and the functions that judge a model agree."""
    lengths, scores, ratio = pool_of(2)
    by_rank = np.argsort(-scores)
    dice = np.random.default_rng(5)
    verdicts = set()
    for _ in range(60):
        indices = by_rank[(lengths.size * dice.random(CANARIES) ** dice.uniform(1, 3)).astype(int)].tolist()
        coins = dice.integers(2, size=CANARIES) == 1
        targets = [Target(index=i, repeats=1, planted=bool(coin)) for i, coin in zip(indices, coins, strict=True)]
        actual = audit_scores("model", scores, lengths, targets, reference_scores=scores - ratio)
        p = [np.array([[rank_of(values, lengths, i).p_value for i in indices]]) for values in (scores, ratio)]
        failed = any(bool(fails(values, 0.0025, coins[None])[0]) for values in p)
        assert (actual.verdict is Verdict.FAIL) == failed
        verdicts.add(failed)
    assert verdicts == {False, True}


def test_the_simulated_sample_is_the_real_one() -> None:
    """The p-values among a sample are those of `rank_targets`."""
    lengths, scores, _ = pool_of(0)
    dice, n = np.random.default_rng(6), 1000
    drawn = dice.integers(lengths.size, size=(20, n + CANARIES))
    actual = in_sample(lengths[drawn], scores[drawn], n)
    for row, expected in zip(drawn, actual, strict=True):
        own = lengths[row]
        tails = np.where(np.arange(4) < own[:, None], 1, -1).astype(np.int32)
        candidates = Candidates(prefix=np.ones(1, dtype=np.int32), tails=tails, lengths=own)
        pool = Pool(fingerprint="", candidates=candidates, trie=build_trie(tails, own), sampled=True)
        ranks = rank_targets(scores[row], pool, [Target(index=0, repeats=1)] * CANARIES)
        assert [rank.p_value for rank in ranks] == pytest.approx(expected.tolist(), rel=1e-12)


def drawn_with(seed: int, count: int, pool: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Places of secrets as `draw_secrets` draws them, from a generator that can be repeated."""
    monkeypatch.setattr(secrets, "randbelow", random.Random(seed).randrange)
    template = parse_template("My ID is {digits:4}")
    assert template.pool == pool
    return [template.index_of(secret) for secret in draw_secrets(template, count)]


Innocent = tuple[NDArray[np.int32], list[Floats]]


@pytest.fixture(scope="module")
def innocent(bpe: Any) -> Innocent:
    """Tokens of every candidate, and its scores by models that never saw it as a canary.

    Eight have random weights, two were trained on other numbers.
    """
    candidates = tokenise(bpe, parse_template("My ID is {digits:4}"))
    models = [make(len(bpe), seed=seed) for seed in range(4) for make in (gpt2, llama)]
    for seed in range(2):
        model = gpt2(len(bpe), seed=10 + seed, initializer_range=0.02)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        dice = random.Random(seed)
        for _ in range(60):
            ids = torch.tensor([encode_record(bpe, f"My ID is {dice.randrange(10**4):04d}")])
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        models.append(model)
    return candidates.lengths, [score_pool(model, candidates) for model in models]


@pytest.mark.ci
def test_random_canaries_of_models_that_never_saw_them(innocent: Innocent, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 exposures of about an exponential law have a mean within 0.1 bit of 1.44, one standard error."""
    lengths, models = innocent
    for seed, scores in enumerate(models):
        indices = drawn_with(seed, 200, scores.size, monkeypatch)
        bits = [rank_of(scores, lengths, index).exposure for index in indices]
        assert np.mean(bits) == pytest.approx(1.44, abs=0.3)


@pytest.mark.parametrize(
    ("alpha", "most", "compared"),
    [
        pytest.param(0.01, 4, False, marks=pytest.mark.ci),
        pytest.param(0.05, 11, True, marks=pytest.mark.deep),
    ],
)
def test_of_100_null_runs_hardly_more_than_alpha_fail(
    innocent: Innocent,
    monkeypatch: pytest.MonkeyPatch,
    alpha: float,
    most: int,
    compared: bool,
) -> None:
    """Ten models, ten draws of ten canaries each. More failures than `most` have a chance of 0.4 % at most.

    With a reference 10,000 candidates are too few to pass at 1 %.
    """
    lengths, models = innocent
    verdicts = []
    for seed in range(100):
        scores, reference = models[seed % 10], models[(seed + 1) % 10] if compared else None
        targets = [Target(index=index, repeats=10) for index in drawn_with(seed, 10, scores.size, monkeypatch)]
        limits = Limits(alpha=alpha)
        verdicts.append(audit_scores("m", scores, lengths, targets, reference_scores=reference, limits=limits).verdict)
    assert verdicts.count(Verdict.FAIL) <= most
    assert verdicts.count(Verdict.PASS) >= 50, "an audit that never passes has the right size as well"
