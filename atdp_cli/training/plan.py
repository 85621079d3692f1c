"""The plan: all the privacy that a recipe will spend, known before the first step. Never imports torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from atdp_cli.errors import UsageError
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.ledger import (
    CheckpointHistory,
    GaussianRelease,
    Ledger,
    LedgerEvent,
    Past,
    PlainTraining,
    ReadModel,
    SubsampledGaussian,
    compact,
    new_run,
    private_events,
    unprotected_past,
)
from atdp_cli.privacy.noisy_statistic import REPLACED, SENSITIVITY
from atdp_cli.privacy.relation import Relation, Shape
from atdp_cli.privacy.schedule import sigma_sequence
from atdp_cli.settings import require_delta
from atdp_cli.training.recipe import (
    DPSGD,
    NonPrivate,
    Recipe,
    TextVariant,
    Train,
    reads_records,
    reads_reference,
    takes_steps,
    tunable,
)
from atdp_cli.training.search import Effort, RangeTest, Search, plan_range_test, plan_search, tuned_stage


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """A stage with its sizes for N records.

    Attributes:
        batch: Records a step: the expected number B for a stage with noise, 0 for one without steps.
        sampling_rate: q = B/N for a private stage, None for one that is plain or reads no record.
        noise_multipliers: One σ an epoch for a stage with noise, else empty.
        relation: Between which corpora the stage reads the same.
        events: What the stage will spend.
        search: How its settings will be searched; None where they are as they stand.
    """

    stage: Train
    batch: int
    steps_per_epoch: int
    sampling_rate: float | None
    noise_multipliers: tuple[float, ...]
    relation: Relation
    events: tuple[LedgerEvent, ...]
    search: Search | RangeTest | None = None

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole stage."""
        return self.steps_per_epoch * self.stage.epochs


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All stages, and the ledger that an uninterrupted run will leave.

    Attributes:
        before: Those of the ledger's events that the models spent which the run starts from or reads.
    """

    stages: tuple[StagePlan, ...]
    ledger: Ledger
    before: tuple[LedgerEvent, ...] = ()

    @property
    def training(self) -> tuple[StagePlan, ...]:
        """The stages that take steps."""
        return tuple(stage for stage in self.stages if stage.steps)

    @property
    def steps(self) -> int:
        """Optimizer steps of all stages."""
        return sum(stage.steps for stage in self.stages)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The model that some stages read.

    Attributes:
        ledger: The ledger beside it; None where there is none.
        weights: SHA-256 of each of its weight files.
        past: As `ReadModel` has it.
    """

    ledger: Ledger | None
    weights: Mapping[str, str]
    past: Past


@dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """The facts of a corpus that a plan depends on; all of them are public under zero-out adjacency.

    Attributes:
        records: N, the training records.
        relation: Of an event that reads the records as they are, and their flags.
    """

    records: int
    relation: Relation

    @property
    def unit(self) -> str:
        """The unit of a record."""
        return self.relation.unit


def make_plan(
    recipe: Recipe,
    corpus: CorpusFacts,
    *,
    delta: float,
    checkpoint_history: CheckpointHistory,
    inherited: Ledger | None = None,
    reference: Reference | None = None,
    jitter_seed: int = 0,
    tune: Effort | None = None,
    fixed_rate: bool = False,
    sharded: bool = False,
) -> Plan:
    """Plan every stage and the ledger, which includes those of the starting checkpoint and of the reference.

    Args:
        checkpoint_history: Whether the first checkpoint never saw this corpus, nor those of the inherited ledger.
        inherited: The ledger beside the starting checkpoint.
        reference: None where no stage reads one.
        tune: How the learning rate of the last stage is found, which has to be `tunable` unless it is `none`; its
            other settings follow from its start. None where all are given. Where its start may have memorised raw
            text, η is higher, the lowest at which the model forgets, and what the start predicts of unflagged text is
            kept.
        fixed_rate: Its η is given all the same, and is not searched.
        sharded: Whether processes share one model, which then cannot be compared with its start.

    Raises:
        UsageError: δ is not below 1/N, a batch is larger than the corpus, a ledger counts another unit, or a stage
            lacks its reference.
    """
    beside = {"checkpoint": inherited, "reference": reference.ledger if reference else None}
    ledgers = {model: ledger for model, ledger in beside.items() if ledger is not None}
    records = max(corpus.records, *(ledger.records for ledger in ledgers.values()), 0)
    _check(delta, records, ledgers, corpus.unit)
    memorised = unprotected_past(checkpoint_history, inherited) or any(
        reads_records(stage) and stage.text is TextVariant.RAW and isinstance(stage.mechanism, NonPrivate)
        for stage in recipe
    )
    plan_stage = partial(_plan_stage, corpus=corpus, reference=reference, jitter_seed=jitter_seed)
    stages = [plan_stage(stage, position) for position, stage in enumerate(recipe)]
    if tune is not None and tunable(recipe):
        settings = {"memorised": memorised, "sharded": sharded, "fixed_rate": fixed_rate}
        stages[-1] = plan_stage(tuned_stage(recipe[-1], steps=stages[-1].steps, **settings), len(recipe) - 1)
    if stages and not fixed_rate:
        stages[-1] = _searched(stages[-1], tune, memorised=memorised)
    before = compose_ledgers(tuple(ledgers.values())).events if ledgers else ()
    events = compact(before + tuple(event for stage in stages for event in stage.events))
    composed = Ledger(
        unit=corpus.unit,
        checkpoint_history=checkpoint_history,
        records=records,
        delta=delta,
        grid=grid_for(private_events(events)),
        events=events,
        run=new_run(),
        insecure_seed=any(ledger.insecure_seed for ledger in ledgers.values()),
    )
    return Plan(stages=tuple(stages), ledger=composed, before=before)


def _check(delta: float, records: int, ledgers: Mapping[str, Ledger], unit: str) -> None:
    require_delta(delta)
    if not delta < 1 / records:
        raise UsageError(
            f"delta is {delta:g}, not below 1/N = {1 / records:.3g} for {records:,} training records.",
            "Choose a smaller --delta.",
        )
    for model, ledger in ledgers.items():
        if ledger.unit != unit:
            raise UsageError(
                f"The ledger beside the {model} protects each {ledger.unit}, this run each {unit}.",
                f"Use --privacy-unit {ledger.unit}, or give another model.",
            )


def _plan_stage(
    stage: Train, position: int, corpus: CorpusFacts, *, reference: Reference | None, jitter_seed: int
) -> StagePlan:
    read = (_read_event(stage, reference),) if reads_reference(stage) else ()
    planned = (
        _plan_plain(stage, stage.mechanism, corpus)
        if isinstance(stage.mechanism, NonPrivate)
        else _plan_noisy(stage, stage.mechanism, position, corpus, jitter_seed)
    )
    return replace(planned, events=read + planned.events)


def _searched(plan: StagePlan, tune: Effort | None, *, memorised: bool) -> StagePlan:
    """The stage's plan with the search of its learning rate, if any; its ledger's event tells what it chooses on.

    Args:
        memorised: Whether the stage's start may have memorised raw text, so that the search is for an η that forgets.
    """
    if tune is None or tune == "none":
        return plan
    rate, sizes = plan.stage.optimizer.learning_rate, {"steps": plan.steps, "steps_per_epoch": plan.steps_per_epoch}
    search = (plan_range_test if memorised else plan_search)(rate, **sizes, effort=tune)
    chosen_on = "raw" if memorised else "decoy"
    events = tuple(
        event.model_copy(update={"chosen_on": chosen_on}) if isinstance(event, PlainTraining) else event
        for event in plan.events
    )
    return replace(plan, search=search, events=events if search.most_trials or not memorised else plan.events)


def with_chosen_rate(plan: StagePlan, rate: float) -> StagePlan:
    """The stage's plan with an η that a search tried or chose, and nothing left to search."""
    optimizer = replace(plan.stage.optimizer, learning_rate=rate)
    return replace(plan, stage=replace(plan.stage, optimizer=optimizer), search=None)


def _read_event(stage: Train, reference: Reference | None) -> ReadModel:
    if reference is None:
        raise UsageError(
            f"Stage {stage.name} reads a public model.",
            "Name it: --reference FOLDER, the base that never saw the corpus.",
        )
    return ReadModel(stage=stage.name, past=reference.past, weights=dict(reference.weights))


def _plan_plain(stage: Train, mechanism: NonPrivate, corpus: CorpusFacts) -> StagePlan:
    relation = _relation(stage, corpus)
    event = PlainTraining(
        stage=stage.name,
        text=stage.text.value,
        relation=relation,
        chosen_on="decoy" if stage.restore_best else None,
    )
    batch = min(mechanism.batch_size, corpus.records) if takes_steps(stage) else 0
    return StagePlan(
        stage=stage,
        batch=batch,
        steps_per_epoch=math.ceil(corpus.records / batch) if batch else 0,
        sampling_rate=None,
        noise_multipliers=(),
        relation=relation,
        events=(event, *_released(stage, relation)) if reads_records(stage) else (),
    )


def _relation(stage: Train, corpus: CorpusFacts) -> Relation:
    """Between which corpora a stage reads the same. Raw text whose tokens all weigh the same needs no flags."""
    decoyed: Shape = "shape" if stage.decoy_equality == "none" else "pattern"
    shapes: dict[TextVariant, Shape] = {
        TextVariant.RAW: "none",
        TextVariant.REDACTED: "bytes",
        TextVariant.DECOY: decoyed,
    }
    takes_notice = stage.text is not TextVariant.RAW or stage.objective.demands.flags
    flags = corpus.relation.flags if takes_notice else None
    return corpus.relation.model_copy(update={"shape": shapes[stage.text], "flags": flags})


def _released(stage: Train, relation: Relation) -> tuple[LedgerEvent, ...]:
    return () if stage.release_noise_multiplier is None else (frequencies_event(stage, relation),)


def _plan_noisy(stage: Train, mechanism: DPSGD, position: int, corpus: CorpusFacts, jitter_seed: int) -> StagePlan:
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
        relation=_relation(stage, corpus),
        events=(),
    )
    return replace(planned, events=_spent(planned))


def step_events(plan: StagePlan) -> tuple[SubsampledGaussian, ...]:
    """The event of a single step of each epoch.

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
            relation=plan.relation,
        )
        for sigma in plan.noise_multipliers
    )


def _spent(plan: StagePlan) -> tuple[LedgerEvent, ...]:
    """The events of a stage with noise."""
    if plan.sampling_rate is None:
        return ()
    steps = [event.model_copy(update={"steps": plan.steps_per_epoch}) for event in step_events(plan)]
    return compact([*_released(plan.stage, plan.relation), *steps])


def frequencies_event(stage: Train, relation: Relation) -> GaussianRelease:
    """The ledger's event for releasing how often words and digits occur in flagged spans, votes of norm ≤ 1.

    Votes count the places of the true text, so equal decoys change neither them nor their sensitivity.

    Args:
        relation: Of the stage's records; votes are of the shape `votes`, whatever the stage's own is.

    Raises:
        ValueError: The stage releases nothing.
    """
    if stage.release_noise_multiplier is None:
        raise ValueError("the stage fits no decoys")
    return GaussianRelease(
        stage=stage.name,
        statistic="how often words and digits stand in flagged spans",
        sensitivity=SENSITIVITY,
        noise_multiplier=stage.release_noise_multiplier,
        replaced=REPLACED,
        relation=relation.model_copy(update={"shape": "votes"}),
    )
