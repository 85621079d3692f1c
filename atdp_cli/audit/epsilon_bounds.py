"""Lower bounds on ε from one training run, to set beside the ε that its ledger claims.

Two games. *In or out*: each of m canaries is in the corpus by a fair coin, and an auditor who sees the model guesses
r of the coins; a claim is tested for leaving out all repeats of a canary (zero-out, group ε). *Ranks*: each canary's
secret is drawn uniformly from N candidates, and the auditor names K of them; a claim is tested for replacing all
repeats of a canary (replace-one, group ε). What the auditor may do is fixed before the run: m, r, N, K and δ.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LARGEST_EPSILON = 60.0
"""Above it randomised response errs once in 10²⁶ guesses: no audit can prove more."""

LARGEST_MU = 20.0
"""Likewise of μ-GDP."""


def in_out_p_value(epsilon: float, delta: float, *, records: int, guesses: int, correct: int) -> float:
    """How likely at most `correct` or more right guesses are under (ε, δ)-DP; in (0, 1].

    Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1) Training Run", Theorem 5.2: with
    f(v) = P[Binomial(r, e^ε/(1+e^ε)) ≥ v],  P[right ≥ v] ≤ f(v) + 2mδ·max over i = 1, …, m of (f(v−i) − f(v))/i.

    Args:
        epsilon, delta: Of the claim, for one canary put in or left out with all its repeats.
        records: m, all canaries with a coin.
        guesses: r ≤ m, fixed before the run.
        correct: v ≤ r.

    Raises:
        ValueError: The counts cannot be.
    """
    from scipy import stats

    if not 0 <= correct <= guesses <= records:
        raise ValueError("need 0 ≤ correct ≤ guesses ≤ records")
    accuracy = 1 / (1 + np.exp(-epsilon))
    tail = float(stats.binom.sf(correct - 1, guesses, accuracy))
    steps = np.arange(1, correct + 1)  # f(v−i) is 1 from i = v on, where only the divisor grows
    gains = (stats.binom.sf(correct - 1 - steps, guesses, accuracy) - tail) / steps
    return min(1.0, tail + 2 * records * delta * float(gains.max(initial=0.0)))


def in_out_bound(*, records: int, guesses: int, correct: int, delta: float, confidence: float = 0.95) -> float:
    """The largest ε that this many right guesses refute at `confidence`, by `in_out_p_value`; 0 where they refute none.

    Args:
        confidence: In (0, 1): so often, at least, the bound is not above the true ε.

    Raises:
        ValueError: The counts cannot be.
    """
    return _largest_refuted(
        lambda epsilon: in_out_p_value(epsilon, delta, records=records, guesses=guesses, correct=correct), confidence
    )


def in_out_attainable(*, records: int, guesses: int, delta: float, confidence: float = 0.95) -> float:
    """The most that so many guesses can prove: `in_out_bound` where all are right."""
    return in_out_bound(records=records, guesses=guesses, correct=guesses, delta=delta, confidence=confidence)


def in_out_gaussian(*, records: int, guesses: int, correct: int, confidence: float = 0.95) -> float:
    """The largest μ such that this many right guesses refute μ-GDP (Gaussian differential privacy) at `confidence`.

    Mahloujifar, Melis and Chaudhuri 2025, Theorem 3.1 for coins and abstentions, with f̄(x) = Φ(Φ⁻¹(x) + μ) for the
    trade-off curve of a Gaussian mechanism. With p_j = P[j of r guesses are right], for every set {i, i+1, …}

        sum over j ≥ i of j·p_j/m ≤ f̄(sum over j ≥ i−1 of (r−j)·p_j/m).

    For P[right ≥ v] = τ, all of it at v, their Algorithm 3 finds the least that the rest must have; μ is refuted where
    this is more than there is. A μ-GDP mechanism is (ε, δ)-DP by `gaussian_epsilon`, and of mechanisms that are
    Gaussian this proves no less than `in_out_bound` does, but for bounds below 0.1, where it can fall 0.02 short.

    Returns:
        μ ≥ 0; 0 where none is refuted.

    Raises:
        ValueError: The counts cannot be.
    """
    if not 0 <= correct <= guesses <= records:
        raise ValueError("need 0 ≤ correct ≤ guesses ≤ records")
    counts = {"records": records, "guesses": guesses, "correct": correct}

    def excess(mu: float) -> float:
        return guesses / records - _least_mass(mu, 1 - confidence, **counts)

    return _root(excess, LARGEST_MU)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε at δ of a μ-GDP mechanism: δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2).

    Source: Dong, Roth and Su 2022, "Gaussian Differential Privacy", Corollary 2.13.

    Args:
        mu: ≥ 0.
        delta: In (0, 1).
    """
    from scipy import special

    def excess(epsilon: float) -> float:
        lost = math.exp(epsilon + float(special.log_ndtr(-epsilon / mu - mu / 2)))
        return delta - float(special.ndtr(-epsilon / mu + mu / 2)) + lost

    return 0.0 if mu == 0 else _root(excess, LARGEST_EPSILON)


def _least_mass(mu: float, tail: float, *, records: int, guesses: int, correct: int) -> float:
    """The least sum of right and wrong guesses, over m, of a game with P[right ≥ v] = τ that μ-GDP allows."""
    from scipy import special

    right, wrong = tail * correct / records, tail * (guesses - correct) / records
    for i in range(correct, 0, -1):
        least = max(wrong, float(special.ndtr(special.ndtri(right) - mu)))
        right += (i - 1) / (guesses - i + 1) * (least - wrong)
        wrong = least
        if right >= 1:
            break
    return right + wrong


def guess_coins(exposures: Sequence[float], guesses: int) -> tuple[tuple[int, bool], ...]:
    """Which coins to guess, as (canary's index, guessed in): half of the guesses in, at the highest exposures, and half
    out, at the lowest. Of equal exposures the one that comes first counts as higher.

    Args:
        exposures: One a canary, bits, finite.
        guesses: An even number, at most that of canaries, fixed before the run: the bound does not hold for a number
            that was chosen by its result.

    Raises:
        ValueError: The number of guesses cannot be.
    """
    if guesses < 0 or guesses % 2 or guesses > len(exposures):
        raise ValueError("need an even number of guesses, at most one a canary")
    order = sorted(range(len(exposures)), key=lambda index: -exposures[index])
    half = guesses // 2
    return (*((index, True) for index in order[:half]), *((index, False) for index in order[len(order) - half :]))


def rank_p_value(epsilon: float, delta: float, *, pool: int, top: int, canaries: int, wins: int) -> float:
    """How likely at most `wins` or more canaries have their secret among the K candidates named, under (ε, δ)-DP.

    Let T be the set named for a canary and E an event that the model and the other canaries decide. For secrets s ≠ s'
    the claim gives P_s[s ∈ T, s' ∉ T, E] ≤ e^ε·P_s'[the same] + δ. Summed over all N(N−1) ordered pairs, as |T| ≤ K,

        (N−K)·P[win, E] ≤ e^ε·K·P[lose, E] + (N−1)·δ.

    At K = 1 this is Lemma A.1 of Mahloujifar, Melis and Chaudhuri 2025, "Auditing f-Differential Privacy in One Run",
    with k = N, for f̄(x) = δ + e^ε·x. The trade-off curve's other side, f̄(x) = 1 − e^−ε·(1−δ−x), adds nothing: it is
    the lower one for x > (1−δ)/(1+e^ε) alone, and winning and losing are too likely together there. As in their
    Theorem 3.1, let E say that one of i−1, i in a set of numbers, is how many others win, and sum over the canaries:
    with p_i = P[i wins], a = e^ε·K/(N−K), D = mδ·(N−1)/(N−K) and the set that makes the most of it,

        sum over i = 1, …, m of max(0, i·p_i − a·(m−i+1)·p_{i−1}) ≤ D.

    The result is the largest P[wins ≥ v] that this allows. Their Algorithm 3 relaxes it to sets {i, i+1, …}, which
    for this f̄ is weaker, even at δ = 0, where here it is P[Binomial(m, a/(1+a)) ≥ v].

    Args:
        epsilon, delta: Of the claim, for one canary replaced with all its repeats.
        pool: N ≥ 2, from which each secret is drawn uniformly and independently.
        top: K from 1 to N−1, fixed before the run. Naming fewer, as where ties are counted against the auditor, is
            allowed.
        canaries: m, those in the corpus; the auditor guesses them all.
        wins: v ≤ m.

    Raises:
        ValueError: The counts cannot be.
    """
    if not (1 <= top < pool and 0 <= wins <= canaries):
        raise ValueError("need 1 ≤ top < pool and 0 ≤ wins ≤ canaries")
    return _largest_tail(
        guesses=canaries,
        correct=wins,
        log_odds=epsilon + math.log(top) - math.log(pool - top),
        budget=canaries * delta * (pool - 1) / (pool - top),
    )


def rank_bound(*, pool: int, top: int, canaries: int, wins: int, delta: float, confidence: float = 0.95) -> float:
    """The largest ε that this many wins refute at `confidence`, by `rank_p_value`; 0 where they refute none.

    Args:
        confidence: In (0, 1): so often, at least, the bound is not above the true ε.

    Raises:
        ValueError: The counts cannot be.
    """
    return _largest_refuted(
        lambda epsilon: rank_p_value(epsilon, delta, pool=pool, top=top, canaries=canaries, wins=wins), confidence
    )


def rank_attainable(*, pool: int, top: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """The most that so many canaries can prove: `rank_bound` where all win."""
    return rank_bound(pool=pool, top=top, canaries=canaries, wins=canaries, delta=delta, confidence=confidence)


def _largest_refuted(p_value: Callable[[float], float], confidence: float) -> float:
    """Where a p-value that rises with ε reaches 1 − confidence; 0 where it starts above."""
    if not 0 < confidence < 1:
        raise ValueError("need a confidence between 0 and 1")

    return _root(lambda epsilon: p_value(epsilon) - (1 - confidence), LARGEST_EPSILON)


def _root(excess: Callable[[float], float], largest: float) -> float:
    """Where a rising function passes 0; 0 where it starts above, `largest` where it is below even there."""
    from scipy import optimize

    if excess(0.0) >= 0:
        return 0.0
    if excess(largest) <= 0:
        return largest
    return float(optimize.brentq(excess, 0.0, largest, xtol=1e-9))


def _largest_tail(*, guesses: int, correct: int, log_odds: float, budget: float) -> float:
    """The largest P[X ≥ v] of X in 0, …, r with sum over i of max(0, i·p_i − a·(r−i+1)·p_{i−1}) ≤ D.

    Let b_i be the chances of Binomial(r, a/(1+a)), B_i its tails, and p_i = w_i·b_i. As i·b_i = a·(r−i+1)·b_{i−1}, the
    sum is that of i·b_i·max(0, w_i − w_{i−1}). The best w nowhere falls: raising what follows a fall above v, and
    lowering what comes before one below v, costs nothing and moves chance to the tail. So p mixes Binomials cut
    off below i, each of which costs i·b_i/B_i and has the tail B_v/B_i, up to i = v. Both rise with i; the best mix
    lies on the upper concave envelope of these points.

    Args:
        guesses, correct: r and v ≤ r.
        log_odds: ln a, finite.
        budget: D ≥ 0.
    """
    from scipy import special

    number = np.arange(guesses + 1)
    log_chances = (
        special.gammaln(guesses + 1) - special.gammaln(number + 1) - special.gammaln(guesses - number + 1)
    ) + (number * special.log_expit(log_odds) + (guesses - number) * special.log_expit(-log_odds))
    log_tails = np.logaddexp.accumulate(log_chances[::-1])[::-1][: correct + 1]
    costs = number[: correct + 1] * np.exp(log_chances[: correct + 1] - log_tails)
    return min(1.0, _envelope(costs, np.exp(log_tails[correct] - log_tails), budget))


def _envelope(x: Floats, y: Floats, at: float) -> float:
    """The upper concave envelope of points with ascending x and y, at a place from x[0] on; flat beyond the last."""
    left, right = 0, len(x) - 1
    if at >= x[right]:
        return float(y[right])
    while True:
        slope = (y[right] - y[left]) / (x[right] - x[left])
        between = slice(left, right + 1)
        # The point farthest above the chord is a corner of the envelope.
        corner = left + int(np.argmax(y[between] - slope * (x[between] - x[left])))
        if corner in (left, right):
            return float(y[left] + slope * (at - x[left]))
        left, right = (corner, right) if x[corner] <= at else (left, corner)
