"""The plan: all the privacy that a recipe will spend, known before the first step. Never imports torch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.calibrate import calibrate_noise
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.guarantee import no_end_to_end, selective_void
from atdp_cli.privacy.ledger import (
    GaussianRelease,
    Ledger,
    LedgerEvent,
    Masks,
    PlainTraining,
    Prior,
    ReadModel,
    SubsampledGaussian,
    compact,
    new_run,
    private_events,
)
from atdp_cli.privacy.release import REPLACED, SENSITIVITY
from atdp_cli.privacy.schedule import scaled, sigma_sequence
from atdp_cli.ranges import require_delta
from atdp_cli.training.recipe import (
    DPSGD,
    Interpolate,
    Plain,
    Recipe,
    Stage,
    Text,
    Train,
    Weighted,
    can_stop,
    last_private,
    reads_records,
    reads_reference,
)

SOLVE_TOLERANCE = 1e-3
"""The solved plan's ε lies within this share below the target."""

LOWEST_NOISE, HIGHEST_NOISE = 0.2, 1000.0
"""The range in which the solver searches for σ₀."""


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """A stage of training with its sizes for N records.

    Attributes:
        batch: Records a step: the expected number B for a stage with noise.
        sampling_rate: q = B/N for a private stage, None for one that is plain or reads no record.
        noise_multipliers: One σ an epoch for a stage with noise, else empty.
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
class InterpolatePlan:
    """A stage that takes no steps, with the events of what it reads."""

    stage: Interpolate
    events: tuple[LedgerEvent, ...]


AnyPlan = StagePlan | InterpolatePlan


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All stages, and the ledger that an uninterrupted run will leave.

    Attributes:
        before: Those of the ledger's events that the models spent which the run starts from or reads.
    """

    stages: tuple[AnyPlan, ...]
    ledger: Ledger
    before: tuple[LedgerEvent, ...] = ()

    @property
    def training(self) -> tuple[StagePlan, ...]:
        """The stages that take steps."""
        return tuple(stage for stage in self.stages if isinstance(stage, StagePlan))

    @property
    def steps(self) -> int:
        """Optimizer steps of all stages."""
        return sum(stage.steps for stage in self.training)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The model that some stages read.

    Attributes:
        ledger: The ledger beside it; None where there is none: then it counts as public, as the user declares.
        weights: SHA-256 of each of its weight files.
    """

    ledger: Ledger | None
    weights: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What a plan depends on in the data; all of it is public under zero-out adjacency.

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
    reference: Reference | None = None,
    watched: bool = False,
    jitter_seed: int = 0,
) -> Plan:
    """Plan every stage and the ledger, which includes those of the starting checkpoint and of the reference.

    Args:
        inherited: The ledger beside the starting checkpoint.
        reference: None where no stage reads one.
        watched: Whether private stages stop early by a criterion that reads the reference.

    Raises:
        UsageError: δ is not below 1/N, a batch is larger than the corpus, a ledger counts another unit, or a stage
            lacks its reference.
    """
    ledgers = [ledger for ledger in (inherited, reference.ledger if reference else None) if ledger is not None]
    largest = max(corpus.records, *(ledger.records for ledger in ledgers), 0)
    require_delta(delta)
    if not delta < 1 / largest:
        raise UsageError(
            f"delta is {delta:g}, not below 1/N = {1 / largest:.3g} for {largest:,} training records.",
            "Choose a smaller --delta.",
        )
    for ledger in ledgers:
        if ledger.unit != corpus.unit:
            raise UsageError(
                f"The ledger beside {'the checkpoint' if ledger is inherited else 'the reference'} protects each "
                f"{ledger.unit}, this run each {corpus.unit}.",
                f"Use --unit {ledger.unit}, or give another model.",
            )
    stages = tuple(
        _plan_stage(stage, position, corpus, reference=reference, watched=watched, jitter_seed=jitter_seed)
        for position, stage in enumerate(recipe)
    )
    before = compose_ledgers(ledgers).events if ledgers else ()
    events = compact(before + tuple(event for stage in stages for event in stage.events))
    composed = Ledger(
        unit=corpus.unit,
        prior="public" if prior == "public" or (inherited and inherited.prior == "public") else "unknown",
        records=largest,
        delta=delta,
        grid=grid_for(private_events(events)),
        events=events,
        run=new_run(),
        insecure_seed=any(ledger.insecure_seed for ledger in ledgers),
    )
    return Plan(stages=stages, ledger=composed, before=before)


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


def _scalable(recipe: Recipe) -> tuple[int, float, Callable[[float], Stage]]:
    """The stage whose noise is solved for: its position, its σ, and the stage as a function of σ."""
    position = last_private(recipe)
    stage = recipe[position]
    if isinstance(stage, Train) and isinstance(mechanism := stage.mechanism, DPSGD):
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
        if isinstance(fitted, Train) and fitted.release_noise_multiplier is not None:
            return place, fitted.release_noise_multiplier, partial(_released_with, fitted)
    raise UsageError("The recipe has no DP stage, so no noise can reach a target ε.", "Add +atdp to --recipe.")


def _released_with(stage: Train, sigma: float) -> Train:
    return replace(stage, release_noise_multiplier=sigma)


def _plan_stage(
    stage: Stage, position: int, corpus: Corpus, *, reference: Reference | None, watched: bool, jitter_seed: int
) -> AnyPlan:
    reads = reads_reference(stage) or (watched and can_stop(stage))
    read = (_read_event(stage, reference),) if reads else ()
    if isinstance(stage, Interpolate):
        return InterpolatePlan(stage=stage, events=read)
    planned = (
        _plan_plain(stage, stage.mechanism, corpus)
        if isinstance(stage.mechanism, Plain)
        else _plan_noisy(stage, stage.mechanism, position, corpus, jitter_seed)
    )
    return replace(planned, events=read + planned.events)


def _read_event(stage: Stage, reference: Reference | None) -> ReadModel:
    if reference is None:
        raise UsageError(
            f"Stage {stage.name} reads a public model.",
            "Name it: --reference FOLDER, the base that never saw the corpus.",
        )
    past = "declared" if reference.ledger is None else reference.ledger.prior
    return ReadModel.model_validate({"stage": stage.name, "past": past, "weights": dict(reference.weights)})


def _plan_plain(stage: Train, mechanism: Plain, corpus: Corpus) -> StagePlan:
    event = {"stage": stage.name, "text": stage.text.value, "masks": _masks(stage, corpus)}
    return StagePlan(
        stage=stage,
        batch=mechanism.batch_size,
        steps_per_epoch=math.ceil(corpus.records / mechanism.batch_size),
        sampling_rate=None,
        noise_multipliers=(),
        events=(PlainTraining.model_validate(event), *_released(stage)),
    )


def _released(stage: Train) -> tuple[LedgerEvent, ...]:
    return () if stage.release_noise_multiplier is None else (frequencies_event(stage),)


def _masks(stage: Train, corpus: Corpus) -> Masks | None:
    """`PlainTraining.masks`; decoys are drawn regardless of which flagged texts are equal."""
    if stage.text is Text.RAW:
        return None
    return "stable" if stage.text is Text.DECOY and corpus.masks == "linked" else corpus.masks


def _plan_noisy(stage: Train, mechanism: DPSGD, position: int, corpus: Corpus, jitter_seed: int) -> StagePlan:
    batch = mechanism.expected_batch or min(256, math.ceil(corpus.records / 4))
    if batch > corpus.records:
        raise UsageError(
            f"batch-size {batch} is larger than the {corpus.records:,} training records.", "Choose a smaller batch."
        )
    planned = StagePlan(
        stage=stage,
        batch=batch,
        steps_per_epoch=math.ceil(corpus.records / batch),
        sampling_rate=batch / corpus.records if reads_records(stage) else None,
        noise_multipliers=sigma_sequence(mechanism.schedule, stage.epochs, position=position, jitter_seed=jitter_seed),
        events=(),
    )
    return replace(planned, events=_spent(planned))


def step_events(plan: StagePlan) -> tuple[SubsampledGaussian, ...]:
    """What a single step of each epoch spends.

    Raises:
        ValueError: The stage reads no record under noise.
    """
    mechanism = plan.stage.mechanism
    if not isinstance(mechanism, DPSGD) or plan.sampling_rate is None:
        raise ValueError(f"stage {plan.stage.name} is not private")
    return tuple(
        SubsampledGaussian(
            stage=plan.stage.name,
            sampling_rate=plan.sampling_rate,
            noise_multiplier=sigma,
            clip_norm=mechanism.clip_norm,
            steps=1,
        )
        for sigma in plan.noise_multipliers
    )


def _spent(plan: StagePlan) -> tuple[LedgerEvent, ...]:
    """What a stage with noise spends."""
    if plan.sampling_rate is None:
        return ()
    stage, events = plan.stage, [*_released(plan.stage)]
    if isinstance(stage.objective, Weighted) and stage.objective.weight == "released":
        events.append(release_event(stage.name, stage.objective))
    events += [event.model_copy(update={"steps": plan.steps_per_epoch}) for event in step_events(plan)]
    return compact(events)


def frequencies_event(stage: Train) -> GaussianRelease:
    """The ledger's event for releasing how often public words and digits occur in flagged spans, votes of norm ≤ 1.

    Raises:
        ValueError: The stage releases nothing.
    """
    if stage.release_noise_multiplier is None:
        raise ValueError("the stage fits no decoys")
    return GaussianRelease(
        stage=stage.name,
        statistic="how often public words and digits stand in flagged spans",
        sensitivity=SENSITIVITY,
        noise_multiplier=stage.release_noise_multiplier,
        replaced=REPLACED,
    )


def release_event(stage: str, objective: Weighted) -> GaussianRelease:
    """The ledger's event for releasing Σα_i, each α_i in [0, 1]."""
    return GaussianRelease(
        stage=stage,
        statistic="sum of the records' shares of sensitive tokens",
        sensitivity=1.0,
        noise_multiplier=objective.release_noise_multiplier,
    )
