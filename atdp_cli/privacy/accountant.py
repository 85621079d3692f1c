"""ε of a sequence of private events, by accountants that share no code with the training loop.

PLD (Koskela et al. 2020; Doroshenko et al. 2022) is the figure to quote, RDP (Mironov 2017; Mironov et al. 2019)
the cross-check. The classical conversion of RDP, which the paper uses, is there to compare with its tables.
"""

import importlib.metadata
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from atdp_cli.errors import InputError
from atdp_cli.files.documents import Frozen, Number
from atdp_cli.privacy.adjacency import Adjacency, EqualSteps, equal_steps, mean_loss, sampling_rate, shifted_steps
from atdp_cli.privacy.ledger import PrivateEvent, SubsampledGaussian
from atdp_cli.privacy.participation import epsilon_without_amplification
from atdp_cli.privacy.pld import LOST_TAIL, compose_pld, extended, refuse_thousands, zero_loss
from atdp_cli.privacy.rng import Floats

ORDERS = (*(1 + tenth / 10 for tenth in range(1, 60)), *range(7, 40), *(round(40 * 1.06**power) for power in range(45)))
"""The orders of Rényi DP, from 1.1 to 520."""

LARGE_ORDERS = tuple(round(520 * 1.25**power) for power in range(13))
"""Further orders, up to 7,600: for noise multipliers in the hundreds. They take long, so they are tried only where they
help."""


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


FINEST_GRID = 1e-5

COARSEST_GRID = 1e-3

MAX_GRID_POINTS = 1 << 20

MAX_GRID_POINTS_OF_GROUP = 1 << 17

MAX_GRID_POINTS_OF_LEDGER = 1 << 24
"""The points that a ledger's own grid may take: far more than `grid_for` gives."""


class Epsilons(Frozen):
    """ε at one δ by three accountants, and ε for an observer who knows the sample of every step.

    Attributes:
        rdp, paper: null under replace-one adjacency with sampled steps, whose Rényi divergence has no known series.
    """

    pld: Number
    rdp: Number | None
    paper: Number | None
    without_amplification: Number


def grid_for(events: Sequence[PrivateEvent]) -> float:
    """The PLD grid: a tenth of the smallest q/σ, the scale of a step's privacy loss, between 1e-5 and 1e-3.

    It is coarser where σ is far below 1, or where the losses of all events would take more than `MAX_GRID_POINTS`.
    """
    scales = [sampling_rate(event) / event.noise_multiplier for event in events]
    precisions = [1 / max(event.noise_multiplier, 1e-100) ** 2 for event in events]
    # With σ far below 1 a step's loss is near 1/(2σ²), and a grid of 1e-3 would need millions of points.
    coarsest = COARSEST_GRID * max((0.05 * precision for precision in precisions), default=1.0)
    chosen = min(max(COARSEST_GRID, coarsest), max(FINEST_GRID, 0.1 * min(scales, default=1.0)))
    return max(chosen, _width(equal_steps(events)) / MAX_GRID_POINTS)


def _width(runs: Sequence[EqualSteps]) -> float:
    """The range of privacy loss that a distribution has to cover."""
    precisions = [1 / max(run.noise_multiplier, 1e-100) ** 2 for run in runs]
    # A step's loss reaches some ten standard deviations, and that of all steps about twice its mean.
    widest = max((10 * math.sqrt(precision) + precision / 2 for precision in precisions), default=0.0)
    return max(widest, 2 * mean_loss(runs))


def accountant_name(grid: float) -> str:
    """The name to print beside an ε."""
    return f"PLD (dp-accounting {importlib.metadata.version('dp-accounting')}, grid {grid:.3g})"


def epsilon_pld(
    events: Iterable[PrivateEvent], delta: float, *, grid: float, adjacency: Adjacency = "zero-out"
) -> float:
    """ε at `delta` by privacy loss distributions with pessimistic rounding, so never below the true value.

    Zero-out adjacency has the privacy loss of add/remove: dp_accounting's REPLACE_SPECIAL.

    Raises:
        BudgetError: ε is in the thousands, where the grid would not fit in memory and no figure is meaningful.
        InputError: The grid is so much finer than that of `grid_for` that it would not fit in memory.
    """
    runs = equal_steps(events, adjacency)
    refuse_thousands(runs)
    if _width(runs) > MAX_GRID_POINTS_OF_LEDGER * grid:
        raise InputError(
            f"A grid of {grid:g} is too fine for what the ledger spends.", "Take the ledger as the tool wrote it."
        )
    return float(compose_pld(runs, grid, adjacency).get_epsilon_for_delta(delta))


def epsilon_group(
    events: Iterable[PrivateEvent], delta: float, *, records: int, grid: float, adjacency: Adjacency = "zero-out"
) -> float:
    """ε at `delta` for `records` ≥ 1 records that are zeroed out, or replaced, together; by PLD.

    With n ~ Binomial(records, q) of them in a step, zeroing them out moves the sum by at most n·C: a mixture of
    Gaussians (Ganesh 2024, "Tight group-level DP guarantees for DP-SGD with sampling via mixture of Gaussians
    mechanisms"). Replacing them moves it between two points within n·C: the mixture and its mirror image.
    The grid is coarser by the number of records, as their privacy loss is larger, or coarser still where the losses
    would take more than `MAX_GRID_POINTS_OF_GROUP` points.

    Raises:
        BudgetError: ε is in the thousands.
    """
    runs = equal_steps(events, adjacency)
    if records > 1:
        grid = max(grid * records, _widest_of_group(runs, records, adjacency) / MAX_GRID_POINTS_OF_GROUP)
    return float(compose_pld(runs, grid, adjacency, records).get_epsilon_for_delta(delta))


def _widest_of_group(runs: Sequence[EqualSteps], records: int, adjacency: Adjacency) -> float:
    """The range of a group's privacy loss: ten standard deviations of a step's, or twice the mean of all steps'."""
    from scipy.stats import binom

    factor = 2 if adjacency == "replace-one" else 1
    shifts = [factor * float(binom.isf(LOST_TAIL, records, run.sampling_rate)) / run.noise_multiplier for run in runs]
    of_a_step = max((10 * shift + shift**2 / 2 for shift in shifts), default=0.0)
    return max(of_a_step, 2 * factor**2 * mean_loss(runs, records))


def epsilons(
    events: Iterable[PrivateEvent], delta: float, *, grid: float, adjacency: Adjacency = "zero-out"
) -> Epsilons:
    """ε by all accountants.

    Raises:
        BudgetError: ε is in the thousands.
    """
    events = tuple(events)
    renyi = adjacency == "zero-out" or all(sampling_rate(event) == 1 for event in events)
    return Epsilons(
        pld=epsilon_pld(events, delta, grid=grid, adjacency=adjacency),
        rdp=epsilon_rdp(events, delta, adjacency) if renyi else None,
        paper=epsilon_paper(events, delta, adjacency) if renyi else None,
        without_amplification=epsilon_without_amplification(events, delta, adjacency),
    )


class EpsilonPoint(Frozen):
    """ε of what the noisy stages had spent after so many steps, releases before them included."""

    step: int
    pld: Number
    rdp: Number
    paper: Number


def epsilon_points(
    events: Sequence[PrivateEvent], delta: float, *, grid: float, points: int = 12
) -> tuple[EpsilonPoint, ...]:
    """ε at `delta` by each accountant at up to `points` steps, the last of them the end; a release is one step."""
    refuse_thousands(equal_steps(events))
    loss, so_far, curve = zero_loss(grid), list[PrivateEvent](), []
    for step, portion in _portions(events, points):
        loss = extended(loss, equal_steps(portion), grid)
        so_far += portion
        pld = float(loss.get_epsilon_for_delta(delta))
        rdp, paper = epsilon_rdp(so_far, delta), epsilon_paper(so_far, delta)
        curve.append(EpsilonPoint(step=step, pld=pld, rdp=rdp, paper=paper))
    return tuple(curve)


def _portions(events: Sequence[PrivateEvent], points: int) -> Iterator[tuple[int, list[PrivateEvent]]]:
    """Up to `points` steps, evenly spaced, each with the events since the one before."""
    total = sum(run.steps for run in equal_steps(events))
    left, spent = list(reversed(events)), 0
    for end in sorted({max(1, round(total * point / points)) for point in range(1, points + 1)}) if total else ():
        portion: list[PrivateEvent] = []
        while spent < end:
            event = left.pop()
            if isinstance(event, SubsampledGaussian) and event.steps > end - spent:
                left.append(event.model_copy(update={"steps": event.steps - (end - spent)}))
                event = event.model_copy(update={"steps": end - spent})
            portion.append(event)
            spent += event.steps if isinstance(event, SubsampledGaussian) else 1
        yield end, portion
