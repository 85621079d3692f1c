"""The σ₀ that meets a target ε. Never imports torch."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.calibrate import calibrate_noise
from atdp_cli.privacy.ledger import Ledger, private_events
from atdp_cli.privacy.schedule import scaled
from atdp_cli.privacy.scope import no_end_to_end, selective_void
from atdp_cli.training.plan import Plan
from atdp_cli.training.recipe import DPSGD, Recipe, Train, last_private, reads_records

SOLVE_TOLERANCE = 1e-3
"""The solved plan's ε lies within this share below the target."""

LOWEST_NOISE, HIGHEST_NOISE = 0.2, 1000.0
"""The range in which the solver searches for σ₀."""


def planned_epsilon(plan: Plan) -> float:
    """ε of all that a plan spends, including what was spent before it."""
    return strongest_epsilon(plan.ledger)


def strongest_epsilon(ledger: Ledger) -> float:
    """ε of all private events of a ledger by PLD, 0 where there are none: the ε of `--target-epsilon`.

    Where the strongest guarantee that holds is the selective one, its adjacency is used: replace-one.
    """
    selective = no_end_to_end(ledger) is not None and selective_void(ledger) is None
    return epsilon_pld(
        private_events(ledger.events),
        ledger.delta,
        grid=ledger.grid,
        adjacency="replace-one" if selective else "zero-out",
    )


def solve_noise(recipe: Recipe, target: float, plan_with: Callable[[Recipe], Plan]) -> Recipe:
    """The recipe with the last DP stage's σ₀ just large enough for ε ≤ `target`, its whole shape scaled along.

    Without a DP stage it is the σ of the last release by which decoys are fitted.

    Args:
        plan_with: Plans a recipe for the corpus at hand.

    Raises:
        UsageError: The target is not above 0, or the recipe has no DP stage.
        BudgetError: Not even σ₀ = 1000 reaches the target.
    """
    if not (math.isfinite(target) and target > 0):
        raise UsageError(f"target-epsilon is {target}.", "Choose a number above 0.")
    position, start, rescaled = _scalable(recipe)

    def with_noise(sigma: float) -> Recipe:
        return (*recipe[:position], rescaled(sigma), *recipe[position + 1 :])

    def epsilon(sigma: float) -> float:
        try:
            return planned_epsilon(plan_with(with_noise(sigma)))
        except BudgetError:
            return math.inf

    start = min(max(start, LOWEST_NOISE), HIGHEST_NOISE)
    # ε falls with σ₀ because the shape is scaled as a whole.
    sigma = calibrate_noise(
        epsilon, target, start=start, cheapest=HIGHEST_NOISE, dearest=LOWEST_NOISE, tolerance=SOLVE_TOLERANCE
    )
    if sigma is None:
        raise BudgetError(
            f"ε = {target:g} cannot be reached: even with a noise multiplier of {HIGHEST_NOISE:g}, ε is "
            f"{epsilon(HIGHEST_NOISE):.3g}.",
            "Ask for a larger ε, fewer epochs or a smaller batch.",
        )
    return with_noise(sigma)


def _scalable(recipe: Recipe) -> tuple[int, float, Callable[[float], Train]]:
    """The stage whose noise is solved for: its position, its σ, and the stage as a function of σ."""
    position = last_private(recipe)
    stage = recipe[position]
    if isinstance(mechanism := stage.mechanism, DPSGD):
        if not reads_records(stage):
            raise UsageError(
                "The recipe's last stage with noise reads no record, so no noise can reach a target ε.",
                "Add +atdp to --recipe.",
            )
        schedule = mechanism.schedule
        return (
            position,
            schedule.noise_multiplier,
            lambda sigma: replace(stage, mechanism=replace(mechanism, schedule=scaled(schedule, sigma))),
        )
    for place, fitted in reversed(list(enumerate(recipe))):
        if fitted.release_noise_multiplier is not None:
            return place, fitted.release_noise_multiplier, partial(_released_with, fitted)
    raise UsageError("The recipe has no DP stage, so no noise can reach a target ε.", "Add +atdp to --recipe.")


def _released_with(stage: Train, sigma: float) -> Train:
    return replace(stage, release_noise_multiplier=sigma)
