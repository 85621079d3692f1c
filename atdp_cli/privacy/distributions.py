"""Privacy loss distributions of steps and of their compositions, by dp_accounting.

Its discretisation ("connect the dots", Doroshenko et al. 2022) and its compositions are used as they are. Only δ(ε) of
the subsampled Gaussian on the whole grid is worked out here, with the formulas of dp_accounting's loop over the grid:
the loop takes most of the time of a ledger with hundreds of σ.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.runs import Run, mean_loss

Floats = npt.NDArray[np.float64]
Adjacency = Literal["zero-out", "replace-one"]

LARGEST_MEAN_LOSS = 3000.0


@lru_cache(maxsize=8)
def composed(runs: tuple[Run, ...], grid: float, adjacency: Adjacency = "zero-out", records: int = 1) -> Any:
    """The privacy loss distribution of all runs, pessimistically rounded to multiples of `grid`.

    Args:
        records: How many records change together; more than one under zero-out adjacency only.

    Raises:
        BudgetError: ε is in the thousands, where the grid would not fit in memory and no figure means anything.
    """
    refuse_thousands(runs, records)
    return extended(identity(grid), runs, grid, adjacency, records)


def extended(
    distribution: Any, runs: Sequence[Run], grid: float, adjacency: Adjacency = "zero-out", records: int = 1
) -> Any:
    """`distribution` composed with that of `runs`."""
    return reduce(lambda so_far, run: so_far.compose(_of_run(run, grid, adjacency, records)), runs, distribution)


def identity(grid: float) -> Any:
    """The distribution of nothing spent."""
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.identity(grid)


def refuse_thousands(runs: Sequence[Run], records: int = 1) -> None:
    """Raise BudgetError where ε is in the thousands."""
    if mean_loss(runs, records) > LARGEST_MEAN_LOSS:
        raise BudgetError(
            "The noise is so small for so many steps that ε is in the thousands: it protects nothing.",
            "Use a larger noise multiplier or fewer steps.",
        )


def _of_run(run: Run, grid: float, adjacency: Adjacency, records: int) -> Any:
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    q, sigma, steps = run
    if adjacency == "replace-one":
        one = pld.from_gaussian_mechanism(
            sigma / math.sqrt(steps) if q == 1 else sigma,
            value_discretization_interval=grid,
            sampling_prob=q,
            neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
        )
        return one if q == 1 else one.self_compose(steps)
    if q == 1:
        return pld.from_gaussian_mechanism(sigma / (records * math.sqrt(steps)), value_discretization_interval=grid)
    return (_sampled(q, sigma, grid) if records == 1 else _mixture(q, sigma, grid, records)).self_compose(steps)


def _mixture(q: float, sigma: float, grid: float, records: int) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld
    from scipy.stats import binom

    together = np.arange(records + 1)
    chances = binom.pmf(together, records, q)
    return pld.from_mixture_gaussian_mechanism(sigma, together, chances, value_discretization_interval=grid)


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
