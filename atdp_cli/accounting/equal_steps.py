"""ε of a run of equal steps that nobody has run yet, and the σ or the number of steps that meet a target ε."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Annotated

from pydantic import Field

from atdp_cli.accounting.request import Unknown
from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.calibrate import calibrate_noise, most_steps
from atdp_cli.privacy.ledger import MAX_STEPS, MIN_RATE, Ledger, SubsampledGaussian, private_events
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.schedule import NoiseMultiplier
from atdp_cli.settings import require_positive, validated
from atdp_cli.training.solve import HIGHEST_NOISE, LOWEST_NOISE, SOLVE_TOLERANCE

MAX_STEPS_SOLVED = 10_000_000

MIN_RATE_SOLVED = 1e-7


@validated
class Parameters:
    """A hypothetical run of equal steps: q in (0, 1], σ > 0, and how many."""

    sampling_probability: Annotated[float, Field(ge=MIN_RATE, le=1)]
    noise_multiplier: NoiseMultiplier
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)]

    def ledger(self, delta: float) -> Ledger:
        """The ledger of such a run."""
        event = SubsampledGaussian(
            stage="hypothetical",
            sampling_rate=self.sampling_probability,
            noise_multiplier=self.noise_multiplier,
            clip_norm=1.0,
            steps=self.steps,
            relation=hypothetical(),
        )
        return Ledger(
            unit="record", checkpoint_history="unknown", records=1, delta=delta, grid=grid_for([event]), events=(event,)
        )


def solve_hypothesis(unknown: Unknown, known: Parameters, target: float, delta: float) -> Parameters:
    """Replace one field of `known` by the value that costs the least accuracy with ε ≤ `target`.

    The least noise and the largest sampling rate are found to 0.1 % of ε, the most steps exactly.

    Raises:
        UsageError: The target is not above 0.
        BudgetError: No value reaches the target.
    """
    require_positive("target-epsilon", target)
    changed, start, cheapest, dearest = _search(unknown, known)

    def cost(value: float) -> float:
        ledger = changed(value).ledger(delta)
        try:
            return epsilon_pld(private_events(ledger.events), delta, grid=ledger.grid)
        except BudgetError:
            return math.inf

    value: float | None
    if unknown is Unknown.STEPS:
        value = most_steps(cost, target, most=MAX_STEPS_SOLVED)
    else:
        value = calibrate_noise(
            cost, target, start=start, cheapest=cheapest, dearest=dearest, tolerance=SOLVE_TOLERANCE
        )
    if value is None:
        raise BudgetError(
            f"ε = {target:g} cannot be reached: with {unknown} at {cheapest:g}, ε is {cost(cheapest):.3g}.",
            "Ask for a larger ε, or change the other parameters.",
        )
    return changed(value if unknown is Unknown.STEPS else _shortened(value, up=unknown is Unknown.NOISE))


def _shortened(value: float, *, up: bool) -> float:
    """`value` to six digits, rounded to the side where ε is smaller, so that it can be typed in again."""
    exact = Decimal(repr(value))
    step = Decimal(1).scaleb(exact.adjusted() - 5)
    return float(exact.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR))


def _search(unknown: Unknown, known: Parameters) -> tuple[Callable[[float], Parameters], float, float, float]:
    """How a value changes the parameters, where to start, and the cheapest and dearest value in ε."""
    match unknown:
        case Unknown.NOISE:
            return lambda value: replace(known, noise_multiplier=value), 1.0, HIGHEST_NOISE, LOWEST_NOISE
        case Unknown.STEPS:
            return lambda value: replace(known, steps=int(value)), 1000, 1, MAX_STEPS_SOLVED
        case Unknown.SAMPLING_PROBABILITY:
            return lambda value: replace(known, sampling_probability=value), 0.01, MIN_RATE_SOLVED, 1.0
