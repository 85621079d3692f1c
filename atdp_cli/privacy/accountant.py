"""ε of a sequence of private events, by three accountants that share no code with the training loop.

PLD (Koskela et al. 2020; Doroshenko et al. 2022) is the figure to quote, RDP (Mironov 2017; Mironov et al. 2019)
the cross-check, and the classical conversion of RDP the paper's way, kept to compare with its tables.
"""

import importlib.metadata
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.ledger import GaussianRelease, PrivateEvent

Adjacency = Literal["zero-out", "replace-one"]

FINEST_GRID = 1e-5
COARSEST_GRID = 1e-3
LARGEST_MEAN_LOSS = 3000.0

ORDERS: tuple[float, ...] = (
    *(1 + x / 10 for x in range(1, 41)),
    *(5 + x / 4 for x in range(1, 21)),
    *range(11, 65),
    *(72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512),
)
LARGE_ORDERS: tuple[float, ...] = tuple(round(512 * 1.5**k) for k in range(1, 12))
"""Tried only where the best of `ORDERS` is the last: with noise multipliers in the hundreds. Slow."""


@dataclass(frozen=True, kw_only=True)
class Epsilons:
    """One δ, three accountants."""

    pld: float
    rdp: float
    paper: float


def grid_for(events: Sequence[PrivateEvent]) -> float:
    """The PLD grid: a tenth of the smallest q/σ, the scale of a step's privacy loss, between 1e-5 and 1e-3."""
    scales = [_sampling_rate(event) / event.noise_multiplier for event in events]
    # With σ far below 1 a step's loss is near 1/(2σ²), and a grid of 1e-3 would need millions of points.
    coarsest = COARSEST_GRID * max((0.05 / event.noise_multiplier**2 for event in events), default=1.0)
    return min(max(COARSEST_GRID, coarsest), max(FINEST_GRID, 0.1 * min(scales, default=1.0)))


def accountant_name(grid: float) -> str:
    """What to print beside an ε."""
    return f"PLD (dp-accounting {importlib.metadata.version('dp-accounting')}, grid {grid:.3g})"


def epsilon_pld(
    events: Iterable[PrivateEvent], delta: float, *, grid: float, adjacency: Adjacency = "zero-out"
) -> float:
    """ε at `delta` by privacy loss distributions with pessimistic rounding, so never below the true value.

    Zero-out adjacency has the privacy loss of add/remove: dp_accounting's REPLACE_SPECIAL.

    Raises:
        BudgetError: ε is in the thousands, where the grid would not fit in memory and no figure means anything.
    """
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    events = tuple(events)
    if _mean_loss(events) > LARGEST_MEAN_LOSS:
        raise BudgetError(
            "The noise is so small for so many steps that ε is in the thousands: it protects nothing.",
            "Use a larger noise multiplier or fewer steps.",
        )
    relation = dp_accounting.NeighboringRelation
    accountant = PLDAccountant(
        relation.REPLACE_SPECIAL if adjacency == "zero-out" else relation.REPLACE_ONE,
        value_discretization_interval=grid,
    )
    for event, count in _runs(events):
        accountant.compose(_dp_event(*event), count)
    return float(accountant.get_epsilon(delta))


def epsilon_rdp(events: Iterable[PrivateEvent], delta: float) -> float:
    """ε at `delta` by Rényi DP with the conversion of Canonne et al. 2020, zero-out adjacency."""
    from dp_accounting.rdp import compute_epsilon

    def convert(orders: Sequence[float], divergences: Sequence[float]) -> tuple[float, float]:
        epsilon, order = compute_epsilon(orders, divergences, delta)
        return float(epsilon), float(order)

    return _best_over_orders(events, convert)


def epsilon_paper(events: Iterable[PrivateEvent], delta: float) -> float:
    """ε = min over orders a of RDP(a) + ln(1/δ)/(a−1): Mironov 2017, Proposition 3, as the paper uses it."""

    def convert(orders: Sequence[float], divergences: Sequence[float]) -> tuple[float, float]:
        pairs = zip(orders, divergences, strict=True)
        return min((rdp + math.log(1 / delta) / (order - 1), order) for order, rdp in pairs)

    return _best_over_orders(events, convert)


def epsilons(events: Iterable[PrivateEvent], delta: float, *, grid: float) -> Epsilons:
    """ε by all three accountants under zero-out adjacency."""
    events = tuple(events)
    return Epsilons(
        pld=epsilon_pld(events, delta, grid=grid),
        rdp=epsilon_rdp(events, delta),
        paper=epsilon_paper(events, delta),
    )


def _runs(events: Iterable[PrivateEvent]) -> list[tuple[tuple[float, float], int]]:
    """Equal (q, σ) counted together and sorted, so that ε does not depend on the order, to the last digit."""
    counts: Counter[tuple[float, float]] = Counter()
    for event in events:
        steps = 1 if isinstance(event, GaussianRelease) else event.steps
        counts[_sampling_rate(event), event.noise_multiplier] += steps
    return sorted(counts.items())


def _sampling_rate(event: PrivateEvent) -> float:
    return 1.0 if isinstance(event, GaussianRelease) else event.sampling_rate


def _mean_loss(events: Iterable[PrivateEvent]) -> float:
    """A bound on the mean privacy loss: a step's is at most q/(2σ²), and at most q²(exp(1/σ²)−1)."""
    total = 0.0
    for (q, sigma), count in _runs(events):
        precision = 1 / max(sigma, 1e-100) ** 2
        amplified = q**2 * math.expm1(precision) if precision < 700 else math.inf
        total += count * min(q * precision / 2, amplified)
    return total


def _dp_event(sampling_rate: float, noise_multiplier: float) -> Any:
    import dp_accounting

    gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
    return gaussian if sampling_rate == 1 else dp_accounting.PoissonSampledDpEvent(sampling_rate, gaussian)


Conversion = Callable[[Sequence[float], Sequence[float]], tuple[float, float]]


def _best_over_orders(events: Iterable[PrivateEvent], convert: Conversion) -> float:
    """The smallest ε that `convert` (orders, divergences → ε, best order) finds."""
    runs = _runs(events)
    if not runs:
        return 0.0
    epsilon, order = convert(*_renyi_curve(runs, ORDERS))
    if order == ORDERS[-1]:
        epsilon = min(epsilon, convert(*_renyi_curve(runs, LARGE_ORDERS))[0])
    return epsilon


def _renyi_curve(
    runs: list[tuple[tuple[float, float], int]], orders: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Orders and the Rényi divergences of the composition, without orders whose series does not converge."""
    import absl.logging
    from dp_accounting.rdp import RdpAccountant

    verbosity = absl.logging.get_verbosity()
    # dp_accounting logs a line for each order that fails; those orders are dropped below.
    absl.logging.set_verbosity(absl.logging.FATAL)
    try:
        accountant = RdpAccountant(orders)
        for event, count in runs:
            accountant.compose(_dp_event(*event), count)
    finally:
        absl.logging.set_verbosity(verbosity)
    # The accountant publishes ε at its best order only; both conversions here need the whole curve.
    curve = zip(orders, accountant._rdp, strict=True)
    kept = [(order, float(rdp)) for order, rdp in curve if math.isfinite(rdp) and rdp >= 0]
    return [order for order, _ in kept], [rdp for _, rdp in kept]
