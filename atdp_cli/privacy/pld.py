"""Privacy loss distributions of steps and of their compositions, by dp_accounting.

Its discretisation ("connect the dots", Doroshenko et al. 2022) and its compositions are used as they are. Two things
are computed here: δ(ε) of the subsampled Gaussian on the whole grid at once, with the formulas of dp_accounting's loop
over the grid, which takes most of the time for a ledger with hundreds of σ; and the distribution for several records
that change together, which dp_accounting lacks for replacing them, and takes seconds for zeroing them out.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from atdp_cli.errors import BudgetError, RunError
from atdp_cli.privacy.adjacency import Adjacency, EqualSteps, mean_loss
from atdp_cli.privacy.rng import Floats

LARGEST_MEAN_LOSS = 3000.0

MIN_NOISE = 0.05
"""With a smaller σ, e to the privacy loss of one step leaves the range of floats."""

LOST_TAIL = math.exp(-50.0)
"""Probability of outputs beyond the grid, as in dp_accounting; it is added to δ."""

TABLE_POINTS, MAX_ITERATIONS = 1 << 13, 100

LOSS_TOLERANCE = 1e-10
"""Relative error of an output's loss; δ is maximal at that output, so its error is far smaller."""


@lru_cache(maxsize=8)
def compose_pld(runs: tuple[EqualSteps, ...], grid: float, adjacency: Adjacency = "zero-out", records: int = 1) -> Any:
    """The privacy loss distribution of all runs, pessimistically rounded to multiples of `grid`.

    Args:
        records: How many records change together.

    Raises:
        BudgetError: ε is in the thousands, where the grid would not fit in memory and no figure is meaningful.
    """
    refuse_thousands(runs, records)
    return extended(zero_loss(grid), runs, grid, adjacency, records)


def extended(
    distribution: Any, runs: Sequence[EqualSteps], grid: float, adjacency: Adjacency = "zero-out", records: int = 1
) -> Any:
    """`distribution` composed with that of `runs`."""
    return reduce(lambda so_far, run: so_far.compose(_of_run(run, grid, adjacency, records)), runs, distribution)


def zero_loss(grid: float) -> Any:
    """The distribution where nothing is spent."""
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.identity(grid)


def refuse_thousands(runs: Sequence[EqualSteps], records: int = 1) -> None:
    """Raise BudgetError where ε is in the thousands, or cannot be computed for a single step."""
    if mean_loss(runs, records) > LARGEST_MEAN_LOSS:
        raise BudgetError(
            "The noise is so small for so many steps that ε is in the thousands: it protects nothing.",
            "Use a larger noise multiplier or fewer steps.",
        )
    least = min((run.noise_multiplier for run in runs), default=math.inf)
    if least < MIN_NOISE:
        raise BudgetError(
            f"A step has a noise multiplier of {least:g}, below {MIN_NOISE}: it protects nothing.",
            "Use a larger noise multiplier.",
        )


def _of_run(run: EqualSteps, grid: float, adjacency: Adjacency, records: int) -> Any:
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    q, sigma, steps = run
    if records > 1 and q < 1:
        return _of_group(q, sigma, grid, adjacency, records).self_compose(steps)
    # Where every step samples all n of them, the sum moves n times as far as for one record.
    sigma /= records
    if q < 1 and adjacency == "zero-out":
        return _sampled(q, sigma, grid).self_compose(steps)
    relations = dp_accounting.NeighboringRelation
    distribution = pld.from_gaussian_mechanism(
        sigma / math.sqrt(steps) if q == 1 else sigma,
        value_discretization_interval=grid,
        sampling_prob=q,
        neighboring_relation=relations.REPLACE_ONE if adjacency == "replace-one" else relations.ADD_OR_REMOVE_ONE,
    )
    return distribution if q == 1 else distribution.self_compose(steps)


def _sampled(q: float, sigma: float, grid: float) -> Any:
    from dp_accounting.pld import pld_pmf, privacy_loss_mechanism
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    def side(adjacency: Any) -> Any:
        loss = privacy_loss_mechanism.GaussianPrivacyLoss(sigma, sampling_prob=q, adjacency_type=adjacency)
        bounds = loss.connect_dots_bounds()
        low, high = math.floor(bounds.epsilon_lower / grid), math.ceil(bounds.epsilon_upper / grid)
        epsilons = np.arange(low, high + 1) * grid
        removed = adjacency == privacy_loss_mechanism.AdjacencyType.REMOVE
        deltas = _deltas(loss, epsilons, q, sigma, removed=removed)
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, low, high, deltas)

    kinds = privacy_loss_mechanism.AdjacencyType
    return PrivacyLossDistribution(side(kinds.REMOVE), side(kinds.ADD))


def _deltas(loss: Any, epsilons: Floats, q: float, sigma: float, *, removed: bool) -> Floats:
    """δ(ε) for ascending ε, shape [ε]: `get_delta_for_epsilon` of dp_accounting's privacy loss mechanism.

    The loss falls with the output x. With removal it is at least ε for x up to −1/2 − σ²·ln(1 + (e^ε − 1)/q), and
    always below ln(1−q); with addition up to 1/2 + σ²·ln(1 + (e^−ε − 1)/q), and never above −ln(1−q).
    """
    sign = 1.0 if removed else -1.0
    inner = sign * epsilons > math.log1p(-q)
    tilted = sign * epsilons[inner] - math.log(q)
    with np.errstate(divide="ignore"):
        # ln(e^tilted − (1/q − 1)), which is minus infinity at the edge.
        unsampled = tilted + np.log1p(-np.exp(np.minimum(math.log(1 / q - 1) - tilted, 0.0)))
    cutoffs = -sign * (0.5 + unsampled * sigma**2)
    deltas = np.where(inner, 0.0, -np.expm1(epsilons) if removed else 0.0)
    deltas[inner] = loss.mu_upper_cdf(cutoffs) - np.exp(epsilons[inner] + loss.mu_lower_log_cdf(cutoffs))
    clipped: Floats = np.clip(deltas, 0.0, 1.0)
    return clipped


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """P = Σ P[n]·N(upper·n, σ²) and Q = Σ P[n]·N(lower·n, σ²): outputs along one direction, in units of C.

    The loss ln P(x)/Q(x) rises with x, as upper ≥ 0 ≥ lower.

    Attributes:
        numbers: Each n with a probability above 0, ascending, shape [n].
        chances: P[n], shape [n].
    """

    sigma: float
    numbers: Floats
    chances: Floats
    upper: float
    lower: float

    def log_above(self, x: Floats, sign: float) -> Floats:
        """ln of the probability above x, of the mixture with this sign."""
        from scipy.special import logsumexp
        from scipy.stats import norm

        distances = np.subtract.outer(x, sign * self.numbers) / self.sigma
        log_chance: Floats = logsumexp(norm.logsf(distances), axis=-1, b=self.chances)
        return log_chance

    def loss_and_slope(self, x: Floats) -> tuple[Floats, Floats]:
        """ln P(x)/Q(x) and its derivative."""
        from scipy.special import logsumexp

        loss, slope = np.zeros_like(x), np.zeros_like(x)
        for weight, sign in ((1.0, self.upper), (-1.0, self.lower)):
            shifts = sign * self.numbers
            terms = np.log(self.chances) + (np.multiply.outer(x, shifts) - shifts**2 / 2) / self.sigma**2
            total = logsumexp(terms, axis=-1)
            loss += weight * total
            slope += weight * (np.exp(terms - total[..., None]) * shifts).sum(-1) / self.sigma**2
        return loss, slope


def _of_group(q: float, sigma: float, grid: float, adjacency: Adjacency, records: int) -> Any:
    """The privacy loss distribution of one step for records that change together, n ~ Binomial(records, q) in the step.

    No pair is easier to tell apart than these mixtures. Say the sampled records' sum goes from u to v, with |u|, |v| at
    most n in units of C, or v = 0 for zero-out. For any set A of outputs take t with N(0, σ²)(x > t) = N(0, σ²I)(A). By
    Neyman and Pearson N(u, σ²I)(A) ≤ N(n, σ²)(x > t) and N(v, σ²I)(A) ≥ N(−n, σ²)(x > t), or N(0, σ²)(x > t) for
    v = 0, for every n alike; so P'(A) − e^ε·Q'(A) ≤ P(x > t) − e^ε·Q(x > t). For zero-out this is Ganesh's mixture of
    Gaussians (2024), and for one replaced record dp_accounting's REPLACE_ONE.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from scipy.stats import binom

    numbers = np.arange(records + 1.0)
    chances = binom.pmf(numbers, records, q)
    possible = chances > 0

    def side(upper: float, lower: float) -> Any:
        pair = _Pair(sigma=sigma, numbers=numbers[possible], chances=chances[possible], upper=upper, lower=lower)
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, *_deltas_of_pair(pair, grid))

    if adjacency == "replace-one":
        return PrivacyLossDistribution(side(1.0, -1.0))
    return PrivacyLossDistribution(side(1.0, 0.0), side(0.0, -1.0))


def _deltas_of_pair(pair: _Pair, grid: float) -> tuple[int, int, Floats]:
    """The first and the last multiple of `grid`, and δ(ε) from the one to the other.

    δ(ε) = P(x > t) − e^ε·Q(x > t), where the loss at t is ε.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    rare = math.log(LOST_TAIL / 2)
    reach = -pair.sigma * float(norm.ppf(LOST_TAIL / 2))
    farthest = brentq(
        lambda x: float(pair.log_above(np.array(x), pair.upper)) - rare, 0.0, pair.numbers[-1] + 2 * reach
    )
    table = np.linspace(-reach, farthest, TABLE_POINTS)
    losses = pair.loss_and_slope(table)[0]
    low, high = math.floor(losses[0] / grid), math.ceil(losses[-1] / grid)
    epsilons = np.arange(low, high + 1) * grid
    cutoffs = _outputs(pair, np.clip(epsilons, losses[0], losses[-1]), table, losses)
    above, below = pair.log_above(cutoffs, pair.upper), pair.log_above(cutoffs, pair.lower)
    deltas = np.clip(np.exp(above) - np.exp(epsilons + below), 0.0, 1.0)
    # Rounding errors may leave a later δ above an earlier one.
    falling: Floats = np.maximum.accumulate(deltas[::-1])[::-1]
    return low, high, falling


def _outputs(pair: _Pair, losses: Floats, table: Floats, tabled: Floats) -> Floats:
    """The outputs with these losses, each between two of the table: Newton's steps, in a bracket that is halved."""
    cells = np.clip(np.searchsorted(tabled, losses), 1, len(table) - 1)
    below, above = table[cells - 1], table[cells]
    outputs: Floats = np.interp(losses, tabled, table)
    for iteration in range(MAX_ITERATIONS):
        current, slope = pair.loss_and_slope(outputs)
        gap = losses - current
        if (np.abs(gap) <= LOSS_TOLERANCE * (1 + np.abs(losses))).all():
            break
        below, above = np.where(gap > 0, outputs, below), np.where(gap > 0, above, outputs)
        stepped = outputs + gap / np.maximum(slope, 1e-300)
        inside = (stepped >= below) & (stepped <= above) & (iteration % 3 < 2)
        outputs = np.where(inside, stepped, (below + above) / 2)
    return outputs


@lru_cache
def largest_sample(records: int, sampling_rate: float) -> int:
    """The number of records that a Poisson sample passes with a probability of at most e^-50.

    Args:
        records: N ≥ 0, of which each is in the sample with probability `sampling_rate`, independently.

    Returns:
        At most N.
    """
    from scipy.stats import binom

    # binom.isf would subtract the tail from 1, where it is lost.
    return bisect_left(range(records), True, key=lambda size: binom.sf(size, records, sampling_rate) <= LOST_TAIL)


def refuse_larger(drawn: int, largest: int) -> None:
    """Raise RunError for a sample of more than `largest` records: the noise is not large enough for so many."""
    if drawn > largest:
        raise RunError(
            f"A sample has {drawn:,} records, above the {largest:,} that the noise covers.",
            "Continue with --resume. By chance this does not happen.",
        )
