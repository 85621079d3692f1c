"""The plan: everything that a recipe will spend, known before the first step. Never imports torch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.ledger import (
    GaussianRelease,
    Ledger,
    LedgerEvent,
    Masks,
    PlainTraining,
    Prior,
    SubsampledGaussian,
    compact,
    new_run,
    private_events,
)
from atdp_cli.privacy.schedule import scaled, sigma_sequence
from atdp_cli.privacy.solve import solve
from atdp_cli.training.recipe import DPSGD, Plain, Recipe, Text, Train, Weighted, last_private

SOLVE_TOLERANCE = 1e-3
"""The solved plan's ε lies within this share below the target."""

LOWEST_NOISE, HIGHEST_NOISE = 0.2, 1000.0
"""Where the solver looks for σ₀."""


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """A stage with its sizes worked out for N records.

    Attributes:
        batch: Records a step: the expected number B for a private stage.
        sampling_rate: q = B/N for a private stage, else None.
        noise_multipliers: One σ an epoch for a private stage, else empty.
        events: What the stage will spend.
    """

    stage: Train
    batch: int
    steps_per_epoch: int
    sampling_rate: float | None
    noise_multipliers: tuple[float, ...]
    events: tuple[LedgerEvent, ...]

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole stage."""
        return self.steps_per_epoch * self.stage.epochs


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All stages, and the ledger that an uninterrupted run will leave."""

    stages: tuple[StagePlan, ...]
    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What a plan needs to know of the data; all of it is public under zero-out adjacency.

    Attributes:
        records: N, the training records.
        unit: What a record is.
        masks: Whether redacted text can change with the secret under a mask, as `PlainTraining` has it.
    """

    records: int
    unit: str
    masks: Masks


def make_plan(
    recipe: Recipe,
    corpus: Corpus,
    *,
    delta: float,
    prior: Prior,
    inherited: Ledger | None = None,
    jitter_seed: int = 0,
) -> Plan:
    """Work out every stage and the ledger, the starting checkpoint's own ledger included.

    Raises:
        UsageError: δ is not below 1/N, a batch is larger than the corpus, or the checkpoint's ledger counts
            another unit.
    """
    largest = max(corpus.records, inherited.records if inherited else 0)
    if not 0 < delta < 1 / largest:
        raise UsageError(
            f"delta is {delta:g}, not below 1/N = {1 / largest:.3g} for {largest:,} training records.",
            "Choose a smaller --delta.",
        )
    stages = tuple(_plan_stage(stage, position, corpus, jitter_seed) for position, stage in enumerate(recipe))
    spent = tuple(event for stage in stages for event in stage.events)
    if inherited is not None and inherited.unit != corpus.unit:
        raise UsageError(
            f"The checkpoint's ledger protects each {inherited.unit}, this run each {corpus.unit}.",
            f"Use --unit {inherited.unit}, or start from another checkpoint.",
        )
    events = compact((inherited.events if inherited else ()) + spent)
    ledger = Ledger(
        unit=corpus.unit,
        prior="public" if prior == "public" or (inherited and inherited.prior == "public") else "unknown",
        records=largest,
        delta=delta,
        grid=grid_for(private_events(events)),
        events=events,
        run=new_run(),
        insecure_seed=inherited is not None and inherited.insecure_seed,
    )
    return Plan(stages=stages, ledger=ledger)


def planned_epsilon(plan: Plan) -> float:
    """ε of all private events of the plan by PLD, 0 where there are none."""
    return epsilon_pld(private_events(plan.ledger.events), plan.ledger.delta, grid=plan.ledger.grid)


def solve_noise(recipe: Recipe, target: float, plan_with: Callable[[Recipe], Plan]) -> Recipe:
    """The recipe with the last DP stage's σ₀ just large enough for ε ≤ `target`, its whole shape scaled along.

    Args:
        plan_with: Plans a recipe for the corpus at hand.

    Raises:
        UsageError: The target is not above 0, or the recipe has no DP stage.
        BudgetError: Not even σ₀ = 1000 reaches the target.
    """
    if not (math.isfinite(target) and target > 0):
        raise UsageError(f"target-epsilon is {target}.", "Choose a number above 0.")
    position = last_private(recipe)
    mechanism = recipe[position].mechanism
    if not isinstance(mechanism, DPSGD):
        raise UsageError("The recipe has no DP stage, so no noise can reach a target ε.", "Add +atdp to --recipe.")

    def with_noise(sigma: float) -> Recipe:
        changed = replace(mechanism, schedule=scaled(mechanism.schedule, sigma))
        return (*recipe[:position], replace(recipe[position], mechanism=changed), *recipe[position + 1 :])

    def epsilon(sigma: float) -> float:
        try:
            return planned_epsilon(plan_with(with_noise(sigma)))
        except BudgetError:
            return math.inf

    start = min(max(mechanism.schedule.noise_multiplier, LOWEST_NOISE), HIGHEST_NOISE)
    # ε falls with σ₀ because the shape is scaled as a whole.
    found = solve(epsilon, target, start=start, cheapest=HIGHEST_NOISE, dearest=LOWEST_NOISE, tolerance=SOLVE_TOLERANCE)
    if found is None:
        raise BudgetError(
            f"ε = {target:g} cannot be reached: even with a noise multiplier of {HIGHEST_NOISE:g}, ε is "
            f"{epsilon(HIGHEST_NOISE):.3g}.",
            "Ask for a larger ε, fewer epochs or a smaller batch.",
        )
    return with_noise(found)


def _plan_stage(stage: Train, position: int, corpus: Corpus, jitter_seed: int) -> StagePlan:
    if isinstance(stage.mechanism, Plain):
        masks = corpus.masks if stage.text is Text.REDACTED else None
        return StagePlan(
            stage=stage,
            batch=stage.mechanism.batch_size,
            steps_per_epoch=math.ceil(corpus.records / stage.mechanism.batch_size),
            sampling_rate=None,
            noise_multipliers=(),
            events=(PlainTraining.model_validate({"stage": stage.name, "text": stage.text.value, "masks": masks}),),
        )
    return _plan_private(stage, stage.mechanism, position, corpus, jitter_seed)


def _plan_private(stage: Train, mechanism: DPSGD, position: int, corpus: Corpus, jitter_seed: int) -> StagePlan:
    batch = mechanism.expected_batch or min(256, math.ceil(corpus.records / 4))
    if batch > corpus.records:
        raise UsageError(
            f"batch-size {batch} is larger than the {corpus.records:,} training records.", "Choose a smaller batch."
        )
    steps_per_epoch = math.ceil(corpus.records / batch)
    sigmas = sigma_sequence(mechanism.schedule, stage.epochs, position=position, jitter_seed=jitter_seed)
    events: list[LedgerEvent] = []
    if isinstance(stage.objective, Weighted) and stage.objective.weight == "released":
        events.append(release_event(stage.name, stage.objective))
    events += [
        SubsampledGaussian(
            stage=stage.name,
            sampling_rate=batch / corpus.records,
            noise_multiplier=sigma,
            clip_norm=mechanism.clip_norm,
            steps=steps_per_epoch,
        )
        for sigma in sigmas
    ]
    return StagePlan(
        stage=stage,
        batch=batch,
        steps_per_epoch=steps_per_epoch,
        sampling_rate=batch / corpus.records,
        noise_multipliers=sigmas,
        events=compact(events),
    )


def release_event(stage: str, objective: Weighted) -> GaussianRelease:
    """The ledger's event for releasing Σα_i, each α_i in [0, 1]."""
    return GaussianRelease(
        stage=stage,
        statistic="sum of the records' shares of sensitive tokens",
        sensitivity=1.0,
        noise_multiplier=objective.release_noise_multiplier,
    )
