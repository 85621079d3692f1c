"""Discrete Gaussian noise: its law, exactly; what it costs beside the Gaussian that it is accounted for as."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from atdp_cli.privacy import discrete_gaussian as sampler
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.discrete_gaussian import LARGEST_DEVIATION, discrete_gaussian
from atdp_cli.privacy.ledger import GaussianRelease
from atdp_cli.privacy.noisy_statistic import GridSum, add_release_noise, grid_bits
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import Floats, KeyStream, insecure_stream

LEVEL = 1e-4
"""Of each test of a law. Seeds are fixed, so it passes or it does not."""

DRAWS = 200_000


def law(deviation: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """The integers within 12 deviations and their probabilities, by the definition."""
    integers = np.arange(-math.ceil(12 * deviation) - 2, math.ceil(12 * deviation) + 3)
    weights = np.exp(-(integers.astype(float) ** 2) / (2 * deviation**2))
    return integers, weights / weights.sum()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "variance", [Fraction(1, 9), Fraction(1, 4), Fraction(1), Fraction(10, 3), Fraction(49), Fraction(123_457, 100)]
)
def test_draws_have_the_probabilities_of_the_definition(variance: Fraction) -> None:
    actual = Counter(discrete_gaussian(variance, DRAWS, insecure_stream(0, f"draws {variance}")).tolist())
    integers, probabilities = law(math.sqrt(variance))
    assert set(actual) <= set(integers.tolist())
    often = probabilities * DRAWS >= 5
    observed = np.array([actual[integer] for integer in integers.tolist()])
    observed = np.append(observed[often], observed[~often].sum())
    expected = np.append(probabilities[often], probabilities[~often].sum()) * DRAWS
    if expected[-1] < 1:
        assert observed[-1] < 10
        observed, expected = observed[:-1], expected[:-1]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > LEVEL


@pytest.mark.one_in(3)
@pytest.mark.parametrize("deviation", [2**20 + 7, 2**52 + 1, LARGEST_DEVIATION])
def test_draws_on_a_fine_grid_are_normal_and_independent(deviation: int) -> None:
    actual = discrete_gaussian(Fraction(deviation) ** 2, DRAWS, insecure_stream(1, "fine"))
    scaled = actual / deviation
    assert stats.kstest(scaled, "norm").pvalue > LEVEL
    assert stats.kstest(scaled**2, "chi2", args=(1,)).pvalue > LEVEL
    assert abs(float(scaled.mean())) < 5 / math.sqrt(DRAWS)
    for lag in (1, 2, DRAWS // 2):
        assert abs(float(np.corrcoef(scaled[:-lag], scaled[lag:])[0, 1])) < 5 / math.sqrt(DRAWS - lag)
    # No bit of the grid is left out: the last three are uniform.
    last = np.bincount(actual & 7, minlength=8)
    assert stats.chisquare(last).pvalue > LEVEL


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(LARGEST_DEVIATION**2 + 1)])
def test_other_variances_are_refused(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="variance"):
        discrete_gaussian(variance, 1, insecure_stream(0, "refused"))


def test_none_and_the_same_stream_twice() -> None:
    assert discrete_gaussian(Fraction(4), 0, insecure_stream(0, "none")).shape == (0,)
    noise, other = (discrete_gaussian(Fraction(2) ** 80, 100, insecure_stream(5, "same")) for _ in range(2))
    assert (noise == other).all()


class Given(KeyStream):
    """Gives words of a list, then those of a real stream."""

    def __init__(self, words: Sequence[int]) -> None:
        super().__init__(bytes(32))
        self.left = list(words)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        given, self.left = self.left[:count], self.left[count:]
        return np.append(np.array(given, dtype=np.uint64), super().words(count - len(given)))


@given(st.integers(1, 2**130), st.data(), st.integers(0, 2**58 - 1), st.integers(0, 2**64 - 1))
def test_a_coin_is_heads_where_its_uniform_number_is_below_its_probability(
    denominator: int, data: st.DataObject, word: int, further: int
) -> None:
    """Also where 58 bits leave it open: then the next ones decide, exactly."""
    close = word * denominator >> 58
    near = st.sampled_from((close, close + 1))
    numerator = min(data.draw(st.one_of(near, st.integers(0, denominator))), denominator)
    actual = sampler._is_below(word, numerator, denominator, Given([further]))
    low = Fraction(word << 64 | further, 2**122)
    probability = Fraction(numerator, denominator)
    if probability >= low + Fraction(1, 2**122):
        assert actual
    elif probability <= low:
        assert not actual


@given(st.lists(st.integers(0, 2**58 - 1), min_size=1, max_size=20), st.integers(1, 70), st.data())
def test_what_58_bits_decide_is_what_the_exact_comparison_would(
    words: list[int], shares: int, data: st.DataObject
) -> None:
    denominator = data.draw(st.integers(1, 2**100))
    near = [word * shares * denominator >> 58 for word in words]
    numerators = [min(data.draw(st.sampled_from([close, close + 1, denominator])), denominator) for close in near]
    floors = np.array([(numerator << 58) // denominator for numerator in numerators], dtype=np.uint64)
    below, unsure = sampler._compared(np.array(words, dtype=np.uint64), floors, shares)
    for word, numerator, heads, open_ in zip(words, numerators, below, unsure, strict=True):
        probability = Fraction(numerator, denominator * shares)
        if heads:
            assert Fraction(word + 1, 2**58) <= probability
        elif not open_:
            assert Fraction(word, 2**58) >= probability


# --- What a release costs


def gaussian_delta(shift: float, epsilon: float) -> float:
    """δ(ε) of the Gaussian mechanism, of sensitivity `shift` in standard deviations (Balle and Wang 2018)."""
    return float(ndtr(shift / 2 - epsilon / shift) - math.exp(epsilon) * ndtr(-shift / 2 - epsilon / shift))


def discrete_delta(deviation: float, shift: int, epsilon: float) -> float:
    """δ(ε) of integers with discrete Gaussian noise, by its definition: Σ max(0, P(j) − e^ε P(j + shift))."""
    integers, probabilities = law(deviation)
    moved = probabilities * np.exp(-(2.0 * shift * integers + float(shift) ** 2) / (2 * deviation**2))
    return float(np.maximum(0.0, probabilities - math.exp(epsilon) * moved).sum())


@settings(max_examples=200)
@given(st.floats(0.3, 60), st.floats(0.05, 4), st.floats(0, 8))
def test_one_number_costs_what_the_gaussian_costs_and_the_bound(deviation: float, ratio: float, epsilon: float) -> None:
    shift = max(1, round(ratio * deviation))
    actual = discrete_delta(deviation, shift, epsilon)
    allowed = gaussian_delta(shift / deviation, epsilon) + (1 + math.exp(epsilon)) / (24 * deviation**2)
    assert actual <= allowed + 1e-13


@settings(max_examples=50)
@given(st.floats(0.4, 60))
def test_the_total_variation_from_the_rounded_gaussian_is_within_its_bound(deviation: float) -> None:
    """And the bound is no more than some five times too large where the grid is fine."""
    integers, probabilities = law(deviation)
    ends = (integers[:, None] + np.array([-0.5, 0.5])) / deviation
    rounded = np.where(ends[:, 0] > 0, ndtr(-ends[:, 0]) - ndtr(-ends[:, 1]), ndtr(ends[:, 1]) - ndtr(ends[:, 0]))
    assert (probabilities - rounded <= probabilities / (24 * deviation**2) + 1e-16).all()
    distance = float(np.maximum(0.0, probabilities - rounded).sum())
    assert distance <= 1 / (24 * deviation**2)
    assert deviation < 1 or distance > 0.2 / (24 * deviation**2)


@settings(max_examples=40)
@given(st.floats(0.6, 6), st.sampled_from([1e-9, 1e-6, 1e-4]), st.sampled_from(["zero-out", "replace-one"]))
def test_the_accountant_covers_a_release(sigma: float, delta: float, adjacency: str) -> None:
    """On a grid of 2¹⁴ widths to a standard deviation, so that the definition can be summed; runs have 2⁵² or more."""
    release = GaussianRelease(
        stage="a", statistic="b", sensitivity=1.0, noise_multiplier=sigma, replaced=2**0.5, relation=hypothetical()
    )
    epsilon = epsilon_pld([release], delta, grid=1e-3, adjacency=adjacency)  # type: ignore[arg-type]
    sensitivity = 1.0 if adjacency == "zero-out" else 2**0.5
    deviation = 2.0**14
    shift = math.floor(sensitivity * deviation / sigma)
    assert discrete_delta(deviation, shift, epsilon) <= delta + (1 + math.exp(epsilon)) / (24 * deviation**2)


@given(st.floats(1e-6, 1e12))
def test_the_grid_is_so_fine_that_the_noise_is_used_as_it_is(sigma: float) -> None:
    """σ is a whole number of widths, from 2⁵² to 2⁵³, so 48,205 coordinates add less than 10⁻²⁸ of total variation."""
    widths = Fraction(sigma) * Fraction(2) ** grid_bits(sigma)
    assert widths.denominator == 1
    assert 2**52 <= widths < 2**53
    assert 48_205 / (24 * float(widths) ** 2) < 1e-28


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan, 2.0**53])
def test_a_deviation_without_a_grid_is_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="standard deviation"):
        grid_bits(sigma)


@pytest.mark.parametrize("sigma", [0.7, 2.5, 1e6])
def test_a_release_has_its_noise_and_says_so(sigma: float) -> None:
    bits, coordinates = grid_bits(sigma), 50_000
    before = GridSum(bits=bits, counts=tuple(range(coordinates)))
    noisy, used = add_release_noise(before, sigma, insecure_stream(2, "release"))
    noise = noisy - np.arange(coordinates) / 2.0**bits
    assert stats.kstest(noise / sigma, "norm").pvalue > LEVEL
    assert used.standard_deviation == sigma
    assert used.coordinates == coordinates
    assert used.squares == pytest.approx(float(noise @ noise))
    assert used.first == noisy[0]
    assert used.grid == 2.0**-bits
