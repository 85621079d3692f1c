"""ε by Rényi differential privacy: the cross-check beside PLD, and the conversion that the paper uses.

A few orders are tried, then finer ones around the best; any choice of orders gives a valid upper bound.
dp_accounting sums the series of Mironov, Talwar and Zhang (2019, §3.3) term by term in Python, a quarter of a second
for an order in the ten thousands, so that for large orders the same series is summed by numpy.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from atdp_cli.privacy.adjacency import Adjacency, EqualSteps, shifted_steps
from atdp_cli.privacy.ledger import PrivateEvent

COARSE_ORDERS: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
LARGE_ORDERS: tuple[int, ...] = tuple(round(512 * 1.5**power) for power in range(1, 14))
"""For noise multipliers in the hundreds, where the best order is in the thousands."""

FRACTIONAL_UP_TO = 12
"""Up to this order, orders between the whole ones are tried too."""

LARGEST_SUMMED = 128
"""For larger orders the series is summed by numpy."""

TERMS_AT_ONCE = 1 << 20

Conversion = Callable[[float, float], float]
"""(order, Rényi divergence) → ε."""


def epsilon_rdp(events: Iterable[PrivateEvent], delta: float, adjacency: Adjacency = "zero-out") -> float:
    """ε at `delta` by Rényi DP with the conversion of Canonne et al. 2020 (Proposition 12).

    Under replace-one adjacency for events that read every record: for sampled steps there is no series.
    """
    from dp_accounting.rdp import compute_epsilon

    def convert(order: float, divergence: float) -> float:
        return float(compute_epsilon([order], [divergence], delta)[0])

    with _silent():
        return _best_over_orders(shifted_steps(events, adjacency), convert)


def epsilon_paper(events: Iterable[PrivateEvent], delta: float, adjacency: Adjacency = "zero-out") -> float:
    """ε = min over orders a of RDP(a) + ln(1/δ)/(a−1): Mironov 2017, Proposition 3, as the paper uses it.

    The adjacencies are those of `epsilon_rdp`.
    """

    def convert(order: float, divergence: float) -> float:
        return divergence + math.log(1 / delta) / (order - 1)

    with _silent():
        return _best_over_orders(shifted_steps(events, adjacency), convert)


def log_moment(order: int, q: npt.NDArray[np.float64], sigma: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """ln A_a of the Poisson-subsampled Gaussian for a whole order a ≥ 2 and 0 < q < 1, shape [runs].

    A_a = Σ_k C(a,k) (1−q)^(a−k) q^k exp((k²−k)/(2σ²)): Mironov, Talwar and Zhang 2019, §3.3. The Rényi divergence
    of order a is ln A_a / (a−1).
    """
    from scipy.special import gammaln

    k = np.arange(order + 1, dtype=np.float64)
    binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = binomial + np.outer(np.log(q), k) + np.outer(np.log1p(-q), order - k)
    terms += np.outer(1 / (2 * sigma**2), k * k - k)
    top = terms.max(axis=1, keepdims=True)
    summed: npt.NDArray[np.float64] = top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))
    return summed


def _best_over_orders(runs: tuple[EqualSteps, ...], convert: Conversion) -> float:
    """The smallest ε that `convert` gives; 0 where nothing was spent."""
    if not runs:
        return 0.0

    def epsilon(order: float) -> float:
        converted = convert(order, _divergence(runs, order))
        return math.inf if math.isnan(converted) else converted

    best = float(min(COARSE_ORDERS, key=epsilon))
    if best == COARSE_ORDERS[-1]:
        best = _climb(epsilon, best)
    step = best / 4
    while step >= (0.05 if best <= FRACTIONAL_UP_TO else max(0.5, best / 200)):
        finer = step if best <= FRACTIONAL_UP_TO else max(1.0, round(step))
        tried = (best - finer, best + finer)
        best = min((best, *(_rounded(order) for order in tried if order > 1.05)), key=epsilon)
        step /= 2
    return epsilon(best)


def _climb(epsilon: Callable[[float], float], best: float) -> float:
    for order in LARGE_ORDERS:
        if epsilon(order) >= epsilon(best):
            break
        best = float(order)
    return best


def _rounded(order: float) -> float:
    """A whole order where orders are large: between them the series is an integral, and slow."""
    return round(order, 2) if order <= FRACTIONAL_UP_TO else float(round(order))


@lru_cache(maxsize=4096)
def _divergence(runs: tuple[EqualSteps, ...], order: float) -> float:
    """The Rényi divergence of the composition; infinite for an order whose series does not converge."""
    return _by_dp_accounting(runs, order) if order <= LARGEST_SUMMED else _by_series(runs, int(order))


def _by_dp_accounting(runs: tuple[EqualSteps, ...], order: float) -> float:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([order])
    for q, sigma, steps in runs:
        gaussian = dp_accounting.GaussianDpEvent(sigma)
        accountant.compose(gaussian if q == 1 else dp_accounting.PoissonSampledDpEvent(q, gaussian), steps)
    # The accountant's own ε is for its best order and one conversion; both conversions need the divergence.
    divergence = float(accountant.rdp[0])
    return divergence if divergence >= 0 else math.inf


def _by_series(runs: tuple[EqualSteps, ...], order: int) -> float:
    full = sum(steps * order / (2 * sigma**2) for q, sigma, steps in runs if q == 1)
    sampled = np.array([run for run in runs if run.sampling_rate < 1], dtype=np.float64).reshape(-1, 3)
    rows = max(1, TERMS_AT_ONCE // (order + 1))
    total = 0.0
    for start in range(0, len(sampled), rows):
        q, sigma, steps = sampled[start : start + rows].T
        total += float(np.dot(steps, np.maximum(log_moment(order, q, sigma), 0.0)))
    return full + total / (order - 1)


@contextmanager
def _silent() -> Iterator[None]:
    """dp_accounting logs a line for each order that fails; such an order is never chosen."""
    import absl.logging

    verbosity = absl.logging.get_verbosity()
    absl.logging.set_verbosity(absl.logging.FATAL)
    try:
        yield
    finally:
        absl.logging.set_verbosity(verbosity)
