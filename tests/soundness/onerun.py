"""The lower bound on ε from one training run (Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1)
Training Run").

Of m records each is in the training set by a fair coin of its own. An auditor who sees the result guesses r of
the coins, abstains on the rest, and is right v times.
"""

import numpy as np
from scipy import optimize, stats

LARGEST_EPSILON = 60.0
"""Above it randomised response errs once in 10²⁶ guesses: no audit can prove more."""


def p_value(epsilon: float, delta: float, *, records: int, guesses: int, correct: int) -> float:
    """How likely at most `correct` or more right guesses are under (ε, δ)-DP.

    Theorem 5.2: with f(v) = P[Binomial(r, e^ε/(1+e^ε)) ≥ v],
    P[right ≥ v] ≤ f(v) + 2mδ·max over i = 1, …, m of (f(v−i) − f(v))/i.

    Args:
        epsilon, delta: Of the claim, for one record put in or left out.
        records: m, all records with a coin.
        guesses: r ≤ m, fixed before the run.
        correct: v ≤ r.
    """
    accuracy = 1 / (1 + np.exp(-epsilon))
    tail = float(stats.binom.sf(correct - 1, guesses, accuracy))
    steps = np.arange(1, correct + 1)  # f(v−i) is 1 from i = v on, where only the divisor grows
    gains = (stats.binom.sf(correct - 1 - steps, guesses, accuracy) - tail) / steps
    return min(1.0, tail + 2 * records * delta * float(gains.max(initial=0.0)))


def epsilon_bound(*, records: int, guesses: int, correct: int, delta: float, confidence: float = 0.95) -> float:
    """The largest ε that this many right guesses refute at `confidence`; 0 where they refute none."""
    if not 0 <= correct <= guesses <= records:
        raise ValueError("need correct ≤ guesses ≤ records")

    def excess(epsilon: float) -> float:
        return p_value(epsilon, delta, records=records, guesses=guesses, correct=correct) - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    return float(optimize.brentq(excess, 0.0, LARGEST_EPSILON, xtol=1e-9))
