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


def guess_coins(exposures: Sequence[float], guesses: int) -> tuple[tuple[int, bool], ...]:
    """The coins to guess, as (canary's index, guessed in): half of the guesses in, at the highest exposures, and half
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


def _largest_refuted(p_value: Callable[[float], float], confidence: float) -> float:
    """Where a p-value that rises with ε reaches 1 − confidence; 0 where it starts above, at most `LARGEST_EPSILON`."""
    from scipy import optimize

    if not 0 < confidence < 1:
        raise ValueError("need a confidence between 0 and 1")
    level = 1 - confidence
    if p_value(0.0) >= level:
        return 0.0
    if p_value(LARGEST_EPSILON) <= level:
        return LARGEST_EPSILON
    return float(optimize.brentq(lambda epsilon: p_value(epsilon) - level, 0.0, LARGEST_EPSILON, xtol=1e-9))


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
