"""The one-run bound itself: published values, order, and how often it is wrong."""

import numpy as np
import pytest
from scipy import special, stats

from tests.soundness.onerun import epsilon_bound, p_value


@pytest.mark.parametrize(
    ("records", "guesses", "correct", "delta", "published"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],
    ids=["appendix-d", "section-7"],
)
def test_published_values(records: int, guesses: int, correct: int, delta: float, published: float) -> None:
    found = epsilon_bound(records=records, guesses=guesses, correct=correct, delta=delta)
    assert found == pytest.approx(published, abs=1e-3)


@pytest.mark.parametrize(("guesses", "largest"), [(10, 1.05), (20, 1.82), (100, 3.49), (200, 4.19), (1000, 5.81)])
def test_the_most_that_r_guesses_prove(guesses: int, largest: float) -> None:
    """All right: accuracy^r = 5 %, so ε = logit(0.05^(1/r))."""
    found = epsilon_bound(records=1000, guesses=guesses, correct=guesses, delta=0)
    assert found == pytest.approx(largest, abs=5e-3)
    assert found == pytest.approx(float(special.logit(0.05 ** (1 / guesses))), abs=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_more_right_guesses_prove_more(delta: float) -> None:
    bounds = [epsilon_bound(records=1000, guesses=200, correct=correct, delta=delta) for correct in range(201)]
    assert bounds == sorted(bounds)
    assert bounds[100] == 0
    assert bounds[200] > bounds[150] > 0


def test_a_larger_delta_or_more_records_prove_less() -> None:
    bounds = [epsilon_bound(records=m, guesses=200, correct=180, delta=d) for d in (0, 1e-6, 1e-4) for m in (200, 1000)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == bounds[1] > bounds[2] > bounds[3] > bounds[4] > bounds[5]


def test_the_delta_term_is_the_theorem_as_it_is_written() -> None:
    epsilon, delta, records, guesses, correct = 1.0, 1e-4, 50, 20, 17

    def f(v: int) -> float:
        return sum(float(stats.binom.pmf(k, guesses, special.expit(epsilon))) for k in range(max(v, 0), guesses + 1))

    most = max((f(correct - i) - f(correct)) / i for i in range(1, records + 1))
    found = p_value(epsilon, delta, records=records, guesses=guesses, correct=correct)
    assert found == pytest.approx(f(correct) + 2 * records * delta * most, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_randomised_response_is_not_accused(epsilon: float, delta: float) -> None:
    """Each coin told truly with chance e^ε/(1+e^ε), and laid open with chance δ: 4,000 audits of all 200 coins."""
    draw = np.random.default_rng(1)
    right = (draw.random((4000, 200)) < special.expit(epsilon)) | (draw.random((4000, 200)) < delta)
    bounds = {k: epsilon_bound(records=200, guesses=200, correct=k, delta=delta) for k in range(201)}
    accused = sum(bounds[int(k)] > epsilon for k in right.sum(1))
    assert stats.binomtest(accused, 4000, 0.05, alternative="greater").pvalue > 0.01


def test_the_bound_comes_close_to_the_truth() -> None:
    """With 10⁵ guesses of randomised response at ε = 2 it lies within 2 %."""
    right = int(np.random.default_rng(2).binomial(100_000, special.expit(2.0)))
    assert 1.96 < epsilon_bound(records=100_000, guesses=100_000, correct=right, delta=0) < 2


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="correct"):
        epsilon_bound(records=10, guesses=5, correct=6, delta=0)
