"""ε by Rényi differential privacy: the cross-check beside PLD, and the conversion that the paper uses.

The divergences are dp_accounting's. Any choice of orders gives a valid upper bound; closer ones than these would
lower an ε that anyone relies on by less than a hundredth.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np

from atdp_cli.privacy.adjacency import Adjacency, shifted_steps
from atdp_cli.privacy.ledger import PrivateEvent
from atdp_cli.privacy.rng import Floats

ORDERS = (*(1 + tenth / 10 for tenth in range(1, 60)), *range(7, 40), *(round(40 * 1.06**power) for power in range(45)))
"""From 1.1 to 520."""

LARGE_ORDERS = tuple(round(520 * 1.25**power) for power in range(13))
"""Up to 7,600: for noise multipliers in the hundreds. They take long, so they are tried only where they help."""


def epsilon_rdp(events: Iterable[PrivateEvent], delta: float, adjacency: Adjacency = "zero-out") -> float:
    """ε at `delta` by Rényi DP with the conversion of Canonne et al. 2020 (Proposition 12).

    Under replace-one adjacency for events that read every record: for sampled steps there is no series.
    """
    from dp_accounting.rdp import compute_epsilon

    return _smallest(events, adjacency, lambda orders, spent: compute_epsilon(orders, spent, delta))


def epsilon_paper(events: Iterable[PrivateEvent], delta: float, adjacency: Adjacency = "zero-out") -> float:
    """ε = min over orders a of RDP(a) + ln(1/δ)/(a−1): Mironov 2017, Proposition 3, as the paper uses it.

    The adjacencies are those of `epsilon_rdp`.
    """

    def convert(orders: Sequence[float], spent: Floats) -> tuple[float, float]:
        epsilons = spent + math.log(1 / delta) / (np.array(orders) - 1)
        best = int(np.argmin(epsilons))
        return float(epsilons[best]), orders[best]

    return _smallest(events, adjacency, convert)


def _smallest(
    events: Iterable[PrivateEvent],
    adjacency: Adjacency,
    convert: Callable[[Sequence[float], Floats], tuple[float, float]],
) -> float:
    """The ε that the best order gives; 0 where nothing was spent.

    Args:
        convert: (orders, the Rényi divergence of each) → ε and the order that gives it.
    """
    runs = shifted_steps(events, adjacency)
    if not runs:
        return 0.0
    smallest = math.inf
    for orders in (ORDERS, LARGE_ORDERS):
        spent = sum(steps * _divergences(q, sigma, orders) for q, sigma, steps in runs)
        epsilon, order = convert(orders, np.asarray(spent))
        smallest = min(smallest, float(epsilon))
        if order < orders[-1]:
            break
    return smallest


@lru_cache(maxsize=4096)
def _divergences(q: float, sigma: float, orders: tuple[float, ...]) -> Floats:
    """The Rényi divergence of one step by each order; infinite where its series does not converge."""
    import dp_accounting
    from absl import logging
    from dp_accounting.rdp import RdpAccountant

    gaussian = dp_accounting.GaussianDpEvent(sigma)
    accountant = RdpAccountant(orders)
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.FATAL)  # a line for each order that fails
    try:
        accountant.compose(gaussian if q == 1 else dp_accounting.PoissonSampledDpEvent(q, gaussian))
    finally:
        logging.set_verbosity(verbosity)
    divergences = np.asarray(accountant.rdp, dtype=np.float64)
    return np.where(divergences >= 0, divergences, np.inf)
