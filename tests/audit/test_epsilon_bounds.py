"""Lower bounds on ε from one run: published values, the theorems as written, order, and how often they are wrong."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from atdp_cli.audit.epsilon_bounds import (
    guess_coins,
    in_out_bound,
    in_out_p_value,
    rank_bound,
    rank_p_value,
)

AUDITS = 4000


def accused_too_often(bounds: list[float], epsilon: float, successes: np.ndarray) -> bool:
    """Whether more than 5 % of the audits have a bound above the true ε, by more than three standard errors."""
    accused = np.mean([bounds[count] > epsilon for count in successes])
    return bool(accused > 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(successes)))


@pytest.mark.parametrize(
    ("records", "guesses", "correct", "delta", "published"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],
    ids=["appendix-d", "section-7"],
)
def test_published_values(records: int, guesses: int, correct: int, delta: float, published: float) -> None:
    actual = in_out_bound(records=records, guesses=guesses, correct=correct, delta=delta)
    assert actual == pytest.approx(published, abs=1e-3)


@pytest.mark.parametrize(("guesses", "largest"), [(10, 1.05), (20, 1.82), (100, 3.49), (200, 4.19), (1000, 5.81)])
def test_the_most_that_r_guesses_prove(guesses: int, largest: float) -> None:
    """All right: accuracy^r = 5 %, so ε = logit(0.05^(1/r)); and a secret out of two is a coin."""
    actual = in_out_bound(records=1000, guesses=guesses, correct=guesses, delta=0)
    assert actual == pytest.approx(largest, abs=5e-3)
    assert actual == pytest.approx(float(special.logit(0.05 ** (1 / guesses))), abs=1e-6)
    assert actual == pytest.approx(rank_bound(pool=2, top=1, canaries=guesses, wins=guesses, delta=0), abs=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_more_right_guesses_prove_more(delta: float) -> None:
    bounds = [in_out_bound(records=1000, guesses=200, correct=correct, delta=delta) for correct in range(201)]
    assert bounds == sorted(bounds)
    assert bounds[100] == 0
    assert bounds[200] > bounds[150] > 0


def test_a_larger_delta_or_more_records_prove_less() -> None:
    bounds = [in_out_bound(records=m, guesses=200, correct=180, delta=d) for d in (0, 1e-6, 1e-4) for m in (200, 1000)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == bounds[1] > bounds[2] > bounds[3] > bounds[4] > bounds[5]


def test_the_delta_term_is_the_theorem_as_it_is_written() -> None:
    epsilon, delta, records, guesses, correct = 1.0, 1e-4, 50, 20, 17

    def f(v: int) -> float:
        return sum(float(stats.binom.pmf(k, guesses, special.expit(epsilon))) for k in range(max(v, 0), guesses + 1))

    most = max((f(correct - i) - f(correct)) / i for i in range(1, records + 1))
    actual = in_out_p_value(epsilon, delta, records=records, guesses=guesses, correct=correct)
    assert actual == pytest.approx(f(correct) + 2 * records * delta * most, rel=1e-12)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_randomised_response_is_not_accused(epsilon: float, delta: float) -> None:
    """Each coin told truly with chance e^ε/(1+e^ε), and laid open with chance δ: audits of all 200 coins."""
    draw = np.random.default_rng(1)
    right = (draw.random((AUDITS, 200)) < special.expit(epsilon)) | (draw.random((AUDITS, 200)) < delta)
    bounds = [in_out_bound(records=200, guesses=200, correct=k, delta=delta) for k in range(201)]
    assert not accused_too_often(bounds, epsilon, right.sum(1))


def test_the_bound_comes_close_to_the_truth() -> None:
    """With 10⁵ guesses of randomised response at ε = 2 it lies within 2 %."""
    right = int(np.random.default_rng(2).binomial(100_000, special.expit(2.0)))
    assert 1.96 < in_out_bound(records=100_000, guesses=100_000, correct=right, delta=0) < 2


def test_the_highest_exposures_are_guessed_in_and_the_lowest_out() -> None:
    assert guess_coins([3.0, 0.5, 9.0, 1.0, 4.0], 4) == ((2, True), (4, True), (3, False), (1, False))
    assert guess_coins([1.0, 1.0, 1.0, 1.0], 2) == ((0, True), (3, False))
    assert guess_coins([1.0], 0) == ()


@pytest.mark.parametrize("guesses", [-2, 1, 4])
def test_a_number_of_guesses_that_cannot_be_is_refused(guesses: int) -> None:
    with pytest.raises(ValueError, match="even number"):
        guess_coins([1.0, 2.0, 3.0], guesses)


@given(
    st.lists(st.integers(0, 5).map(float), max_size=30).flatmap(
        lambda actual: st.tuples(st.just(actual), st.integers(0, len(actual) // 2).map(lambda half: 2 * half))
    )
)
def test_no_canary_guessed_in_stands_below_one_that_is_not(drawn: tuple[list[float], int]) -> None:
    exposures, guesses = drawn
    coins = dict(guess_coins(exposures, guesses))
    assert len(coins) == guesses
    assert sum(coins.values()) == guesses // 2
    ranks = {index: 2 if coins.get(index) else 1 if index not in coins else 0 for index in range(len(exposures))}
    for canary, other in itertools.permutations(ranks, 2):
        assert ranks[canary] <= ranks[other] or exposures[canary] >= exposures[other]


def test_the_sharpest_private_answer_wins_as_often_as_the_lemma_allows() -> None:
    """Name a set of K = 2 of 5 with odds e^ε for those that hold the secret: ε-DP, and the lemma is an equation."""
    epsilon, pool, top = 1.3, 5, 2
    sets = list(itertools.combinations(range(pool), top))
    odds = np.array([[math.exp(epsilon * (secret in named)) for named in sets] for secret in range(pool)])
    chances = odds / odds.sum(1, keepdims=True)
    assert (chances[:, None] / chances[None]).max() == pytest.approx(math.exp(epsilon))
    win = float(chances[0, [0 in named for named in sets]].sum())
    assert (pool - top) * win == pytest.approx(math.exp(epsilon) * top * (1 - win))
    assert rank_p_value(epsilon, 0, pool=pool, top=top, canaries=1, wins=1) == pytest.approx(win)


@given(st.floats(0, 8), st.integers(2, 10**6), st.floats(0, 1), st.integers(1, 60), st.floats(0, 1))
def test_without_delta_the_wins_are_at_most_binomial(
    epsilon: float, pool: int, share: float, canaries: int, won: float
) -> None:
    top, wins = 1 + round(share * (pool - 2)), round(won * canaries)
    odds = top * math.exp(epsilon) / (pool - top)
    exact = float(stats.binom.sf(wins - 1, canaries, odds / (1 + odds)))
    actual = rank_p_value(epsilon, 0, pool=pool, top=top, canaries=canaries, wins=wins)
    assert actual == pytest.approx(exact, rel=1e-8, abs=1e-300)


@given(st.floats(0, 5), st.floats(0, 0.5), st.integers(2, 1000))
def test_one_canary_wins_as_often_as_the_claim_says(epsilon: float, delta: float, pool: int) -> None:
    """(N−1)·P[win] = e^ε·P[lose] + (N−1)·δ."""
    exact = min(1.0, (math.exp(epsilon) + (pool - 1) * delta) / (pool - 1 + math.exp(epsilon)))
    assert rank_p_value(epsilon, delta, pool=pool, top=1, canaries=1, wins=1) == pytest.approx(exact)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0, 4),
    st.sampled_from([0.0, 1e-3, 0.02, 0.2]),
    st.sampled_from([(2, 1), (3, 1), (5, 4), (10, 3), (10**6, 100)]),
    st.integers(1, 5),
    st.data(),
)
def test_the_p_value_is_the_most_that_the_theorem_allows(
    epsilon: float, delta: float, game: tuple[int, int], canaries: int, data: st.DataObject
) -> None:
    """A linear programme over p_0, …, p_m with the inequality for every set of numbers and both sides of the curve."""
    (pool, top), wins = game, data.draw(st.integers(0, canaries))
    rows, limits = [], []
    for size in range(1, canaries + 1):
        for numbers in itertools.combinations(range(1, canaries + 1), size):
            won, lost = np.zeros(canaries + 1), np.zeros(canaries + 1)
            for i in numbers:
                won[i] += (pool - top) / (pool - 1) * i / canaries
                lost[i - 1] += top / (pool - 1) * (canaries - i + 1) / canaries
            rows += [won - math.exp(epsilon) * lost, won - math.exp(-epsilon) * lost]
            limits += [delta, 1 - math.exp(-epsilon) * (1 - delta)]
    tail = np.arange(canaries + 1) >= wins
    best = optimize.linprog(
        -tail.astype(float), A_ub=rows, b_ub=limits, A_eq=np.ones((1, canaries + 1)), b_eq=[1.0], bounds=(0, 1)
    )
    actual = rank_p_value(epsilon, delta, pool=pool, top=top, canaries=canaries, wins=wins)
    assert actual == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3, 0.05])
@pytest.mark.parametrize(("pool", "top", "wins"), [(2, 1, 33), (100, 1, 8), (100, 5, 20), (10, 9, 40)])
def test_the_p_value_of_many_canaries_is_that_of_a_linear_programme(
    delta: float, pool: int, top: int, wins: int
) -> None:
    epsilon, canaries = 1.5, 40
    odds = math.exp(epsilon) * top / (pool - top)
    size = canaries + 1
    excess = np.diag(np.arange(size)) - np.diag(odds * (canaries - np.arange(canaries)), -1)
    best = optimize.linprog(
        np.r_[-(np.arange(size) >= wins).astype(float), np.zeros(size)],
        A_ub=np.r_[np.c_[excess, -np.eye(size)], [np.r_[np.zeros(size), np.ones(size)]]],
        b_ub=np.r_[np.zeros(size), canaries * delta * (pool - 1) / (pool - top)],
        A_eq=[np.r_[np.ones(size), np.zeros(size)]],
        b_eq=[1.0],
    )
    actual = rank_p_value(epsilon, delta, pool=pool, top=top, canaries=canaries, wins=wins)
    assert actual == pytest.approx(-best.fun, rel=1e-5, abs=1e-7)


def algorithm_3(inverse: Callable[[float], float], *, alphabet: int, canaries: int, wins: int) -> float:
    """The smallest τ at which Algorithm 3 of Mahloujifar et al. (with the maximum of its printed code) says that so
    many wins are no likelier than τ."""

    def total(level: float) -> float:
        r, h = level * wins / canaries, level * (canaries - wins) / canaries
        for i in reversed(range(wins)):
            lifted = max(h, (alphabet - 1) * inverse(r))
            r, h = r + i / (canaries - i) * (lifted - h), lifted
        return r + h

    return 1.0 if total(1.0) <= 1 else float(optimize.brentq(lambda level: total(level) - 1, 0, 1, xtol=1e-12))


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("pool", "wins"), [(2, 150), (2, 165), (50, 12), (50, 20)])
def test_it_is_sharper_than_the_published_algorithm(delta: float, pool: int, wins: int) -> None:
    epsilon = 1.0

    def inverse(y: float) -> float:
        return max(0.0, (y - delta) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * (1 - y))

    published = algorithm_3(inverse, alphabet=pool, canaries=200, wins=wins)
    actual = rank_p_value(epsilon, delta, pool=pool, top=1, canaries=200, wins=wins)
    assert 0 < actual < published < 1


@pytest.mark.parametrize("canaries", [5, 20, 100])
@pytest.mark.parametrize("delta", [1e-6, 1e-4, 1e-2])
def test_a_secret_out_of_two_proves_no_less_than_a_coin(canaries: int, delta: float) -> None:
    for wins in range(canaries + 1):
        by_coin = in_out_bound(records=canaries, guesses=canaries, correct=wins, delta=delta)
        assert rank_bound(pool=2, top=1, canaries=canaries, wins=wins, delta=delta) >= by_coin - 1e-8


@settings(deadline=None)
@given(st.data())
def test_the_p_value_rises_with_the_claim_and_falls_with_the_wins(data: st.DataObject) -> None:
    pool, canaries = data.draw(st.integers(2, 10**6)), data.draw(st.integers(1, 100))
    top, wins = data.draw(st.integers(1, pool - 1)), data.draw(st.integers(0, canaries - 1))
    low, high = sorted(data.draw(st.tuples(st.floats(0, 20), st.floats(0, 20))))
    less, more = sorted(data.draw(st.tuples(st.floats(0, 0.1), st.floats(0, 0.1))))

    def p_value(epsilon: float, delta: float, wins: int) -> float:
        return rank_p_value(epsilon, delta, pool=pool, top=top, canaries=canaries, wins=wins)

    least = p_value(low, less, wins)
    assert 0 <= least <= p_value(high, less, wins) * (1 + 1e-9)
    assert least <= p_value(low, more, wins) * (1 + 1e-9)
    assert p_value(low, less, wins + 1) <= least * (1 + 1e-9)
    assert p_value(low, less, 0) == 1


@pytest.mark.parametrize(("pool", "top"), [(2, 1), (100, 1), (100, 10), (10**6, 1), (10**6, 1000)])
def test_all_wins_prove_the_closed_form(pool: int, top: int) -> None:
    """P[win]^m = 5 %, so ε = logit(0.05^(1/m)) + ln((N−K)/K)."""
    exact = float(special.logit(0.05 ** (1 / 30))) + math.log((pool - top) / top)
    assert rank_bound(pool=pool, top=top, canaries=30, wins=30, delta=0) == pytest.approx(exact, abs=1e-6)
    assert rank_bound(pool=pool, top=top, canaries=30, wins=30, delta=1e-5) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_more_wins_prove_more(delta: float) -> None:
    bounds = [rank_bound(pool=1000, top=10, canaries=100, wins=wins, delta=delta) for wins in range(101)]
    assert bounds == sorted(bounds)
    assert bounds[1] == 0
    assert bounds[100] > bounds[50] > bounds[10] > 0


@pytest.mark.parametrize("epsilon", [0.0, 2.0, 6.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.03])
@pytest.mark.parametrize(("pool", "top"), [(2, 1), (1000, 1), (1000, 20)])
@pytest.mark.parametrize("at_once", [False, True], ids=["each", "at-once"])
def test_private_answers_are_not_accused(epsilon: float, delta: float, pool: int, top: int, *, at_once: bool) -> None:
    """50 secrets, each in the set named with the largest chance of ε-DP, else laid open with chance δ: one by one, or
    all of them at once, which one claim of (ε, δ) allows as well."""
    draw = np.random.default_rng([pool, top, at_once])
    odds = math.exp(epsilon) * top / (pool - top)
    opened = draw.random((AUDITS, 1 if at_once else 50)) < delta
    wins = ((draw.random((AUDITS, 50)) < odds / (1 + odds)) | opened).sum(1)
    bounds = [rank_bound(pool=pool, top=top, canaries=50, wins=k, delta=delta) for k in range(51)]
    assert not accused_too_often(bounds, epsilon, wins)


@pytest.mark.parametrize(("pool", "top"), [(2, 1), (100, 1), (1000, 30)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_many_canaries_come_close_to_the_truth(pool: int, top: int, delta: float) -> None:
    """With 10⁵ of them at ε = 3 the bound lies within 2 %."""
    odds = math.exp(3.0) * top / (pool - top)
    wins = int(np.random.default_rng(3).binomial(100_000, odds / (1 + odds)))
    assert 2.94 < rank_bound(pool=pool, top=top, canaries=100_000, wins=wins, delta=delta) < 3


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="correct"):
        in_out_bound(records=10, guesses=5, correct=6, delta=0)
    with pytest.raises(ValueError, match="top"):
        rank_bound(pool=10, top=10, canaries=5, wins=1, delta=0)
    with pytest.raises(ValueError, match="wins"):
        rank_bound(pool=10, top=1, canaries=5, wins=6, delta=0)
    with pytest.raises(ValueError, match="confidence"):
        rank_bound(pool=10, top=1, canaries=5, wins=5, delta=0, confidence=1.0)
