"""The reports of a run, from its plan, its ledger and what was measured."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from atdp_cli.jobs.harden.model_card import inherited_card
from atdp_cli.jobs.harden.request import HardenRequest, Planned, corrected
from atdp_cli.jobs.harden.result import HardenResult, TrainedRun
from atdp_cli.jobs.harden.sentence import compare_surprise, surprise
from atdp_cli.jobs.machine import hardware
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.folder import is_adapter, weight_files
from atdp_cli.privacy.accountant import epsilons, moments
from atdp_cli.privacy.guarantee import POISSON, guarantee_sentences
from atdp_cli.privacy.ledger import Ledger, ReadModel, private_events
from atdp_cli.report.document import (
    CROSSCHECKED,
    NOT_COVERED,
    REVIEWED,
    BeforeAfter,
    CrossCheckEntry,
    DetectorEntry,
    EpsilonEntry,
    EpsilonPoint,
    PerplexityEntry,
    PrivateReport,
    PublicReport,
    ReferenceEntry,
    SamplingEntry,
    StageEntry,
    StagePrivate,
    guarantee_entries,
)
from atdp_cli.report.numbers import json_numbers
from atdp_cli.report.wording import lay_summary
from atdp_cli.runs.resume import missing_steps, steps_of
from atdp_cli.runs.workspace import Workspace
from atdp_cli.text.crosscheck.request import public_name
from atdp_cli.text.detection.scan import pipeline_name
from atdp_cli.text.detection.term_lists import read_terms
from atdp_cli.text.redaction.placeholders import Style
from atdp_cli.training.clipping.select import SelectedEngine
from atdp_cli.training.objective import Weighing, sensitive_share
from atdp_cli.training.plan import AnyPlan, InterpolatePlan, Plan, StagePlan
from atdp_cli.training.recipe import (
    DPSGD,
    AdamBC,
    Anchored,
    Nothing,
    Objective,
    Plain,
    Text,
    Train,
    Uniform,
    Weighted,
    reads_records,
)
from atdp_cli.training.state import StageResult

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Entry = TypeVar("Entry", bound=BaseModel)

_ENGINE_CHECK = {
    False: "agreed with clipping one record at a time, on random tokens, before the first step",
    True: "clips one record at a time",
}

_IN_HALF = "; layers compute in bfloat16, all that privacy rests on in float32"

HIDDEN_SAMPLE = (
    "Poisson: each record by an independent draw in each step, from AES-256-CTR keyed by the operating system; "
    "neither the key nor the sample is written anywhere."
)
SEEDED_SAMPLE = "Poisson, from a seed: whoever knows it knows every sample."


def _engine_check(engine: SelectedEngine) -> str:
    return _ENGINE_CHECK[engine.name == "loop"] + (_IN_HALF if engine.precision == "bfloat16" else "")


def public_report(
    planned: Planned, trained: TrainedRun, result: HardenResult, written: Checkpoint, work: Workspace
) -> PublicReport:
    """The part that may be published with the model.

    Args:
        written: The model as it was loaded again.
    """
    request, plan, ledger = planned.request, planned.plan, result.ledger
    private = private_events(ledger.events)
    return PublicReport(
        summary=lay_summary(ledger, result.guarantees),
        verdict=guarantee_sentences(ledger, result.guarantees),
        guarantees=guarantee_entries(result.guarantees),
        epsilon=_as(EpsilonEntry, epsilons(private, ledger.delta, grid=ledger.grid)) if private else None,
        delta=ledger.delta,
        unit=ledger.unit,
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        prior=ledger.prior,
        inherited_ledger=planned.inherited is not None,
        references=_references(ledger),
        recipe=request.recipe_name,
        stages=tuple(
            _trained_entry(stage, request.style, *stage_result)
            for stage, stage_result in zip(plan.stages, trained.stages, strict=True)
        ),
        detector=_detector_entry(request, trained.data.pipeline),
        engine=trained.engine.name,
        engines_refused=trained.engine.refused,
        engine_check=_engine_check(trained.engine),
        sampling=_sampling(plan, ledger),
        noise_source="insecure seed: nothing is protected"
        if ledger.insecure_seed
        else "AES-256-CTR keyed by the operating system",
        insecure_seed=ledger.insecure_seed,
        epsilon_over_steps=tuple(
            _as(EpsilonPoint, point) for point in (moments(private, ledger.delta, grid=ledger.grid) if private else ())
        ),
        sentence=compare_surprise(trained.surprise, surprise(written, trained.data.sentence)),
        passes=_passes(plan, trained.results),
        repeated_steps=steps_of(ledger.events) - steps_of(plan.ledger.events) + missing_steps(plan, trained.results),
        ended_early=result.ended_early,
        start={file.name: planned.sha256(file) for file in weight_files(request.model)},
        weights=ledger.seal,
        software=ledger.software,
        hardware=hardware(trained.device),
        command=request.command_without_paths,
        card=inherited_card(
            request.model,
            encoder=bool(trained.checkpoint.model.config.is_encoder_decoder),
            adapter=is_adapter(work.model),
        ),
        created=ledger.created or "",
        not_covered=_not_covered(request),
    )


def _as(entry: type[Entry], figures: "DataclassInstance") -> Entry:
    """Figures as the report lists them."""
    return entry.model_validate(json_numbers(asdict(figures)))


def _passes(plan: Plan, results: Sequence[StageResult]) -> float:
    """How often a record is read by all training stages together, on average."""
    passes = 0.0
    for stage, result in zip(plan.stages, results, strict=True):
        if isinstance(stage, StagePlan) and reads_records(stage.stage):
            steps = stage.steps if result.ended_after is None else result.ended_after
            rate = stage.sampling_rate
            passes += stage.stage.epochs * steps / stage.steps if rate is None else steps * rate
    return passes


def _sampling(plan: Plan, ledger: Ledger) -> SamplingEntry | None:
    """None where no stage draws records in secret."""
    if not any(stage.sampling_rate is not None and reads_records(stage.stage) for stage in plan.training):
        return None
    return SamplingEntry(assumed=POISSON, run=SEEDED_SAMPLE if ledger.insecure_seed else HIDDEN_SAMPLE)


def _references(ledger: Ledger) -> tuple[ReferenceEntry, ...]:
    read = {tuple(event.weights.items()): event for event in ledger.events if isinstance(event, ReadModel)}
    return tuple(ReferenceEntry(past=event.past, weights=event.weights) for event in read.values())


def _not_covered(request: HardenRequest) -> tuple[str, ...]:
    crosschecked = () if request.detector.crosscheck is None else (CROSSCHECKED,)
    reviewed = () if request.review is None else (REVIEWED,)
    return (*NOT_COVERED, *crosschecked, *reviewed)


def _detector_entry(request: HardenRequest, pipeline: Any) -> DetectorEntry:
    crosscheck = request.detector.crosscheck
    return DetectorEntry(
        tier=request.detector.tier,
        pipeline=None if request.spans is not None else pipeline_name(pipeline),
        lists=corrected(request),
        crosscheck=None
        if crosscheck is None
        else CrossCheckEntry(model=public_name(crosscheck), masked=crosscheck.masked),
    )


def private_report(
    request: HardenRequest, trained: TrainedRun, result: HardenResult, public: PublicReport, *, interruptions: int
) -> PrivateReport:
    """The whole report, for the owner of the records.

    Args:
        interruptions: How often the run was interrupted.
    """
    data = trained.data
    return PrivateReport(
        public=public,
        seconds=result.seconds,
        perplexity=BeforeAfter(before=_as(PerplexityEntry, result.before), after=_as(PerplexityEntry, result.after)),
        sensitive_share=sensitive_share(data.held_out),
        stages=tuple(
            StagePrivate(
                name=entry.name,
                perplexities=tuple(_as(PerplexityEntry, epoch) for epoch in stage.perplexities),
                mean_norms=stage.mean_norms,
                not_finite=stage.not_finite,
                seconds=stage.seconds,
                processor_seconds=stage.processor_seconds,
                tokens=stage.tokens,
                clamped=weighing.clamped,
                sensitive_weight=weighing.share,
            )
            for entry, (stage, weighing) in zip(public.stages, trained.stages, strict=True)
        ),
        planted_canaries=data.planted,
        flagged_spans=sum(len(flagged.spans) for flagged in data.trained),
        unread_records=data.unread,
        listed_terms=sum(len(read_terms(file)) for file in (*request.detector.allow, *request.detector.deny)),
        interruptions=interruptions,
        command=request.command,
    )


def _trained_entry(plan: AnyPlan, style: Style, result: StageResult, weighing: Weighing) -> StageEntry:
    """A stage as the report lists it once it is trained."""
    return stage_entry(plan, style).model_copy(
        update={
            "released_share": weighing.alpha,
            "released_weight": weighing.weight,
            "stopped_after": result.stopped_after,
            "ended_after": result.ended_after if result.stopped_after is None else None,
        }
    )


def stage_entry(plan: AnyPlan, style: Style) -> StageEntry:
    """A planned stage as the report lists it, with the style of its placeholders."""
    if isinstance(plan, InterpolatePlan):
        return StageEntry(
            name=plan.stage.name, mechanism="none", objective=f"weights interpolated, β = {plan.stage.beta:g}"
        )
    stage, mechanism = plan.stage, plan.stage.mechanism
    return StageEntry(
        name=stage.name,
        text=stage.text.value if reads_records(stage) else None,
        placeholders=style.value if stage.text is Text.REDACTED else None,
        objective=describe_objective(stage.objective),
        mechanism="plain" if isinstance(mechanism, Plain) else "dp-sgd" if reads_records(stage) else "noise",
        epochs=stage.epochs,
        steps=plan.steps,
        batch=plan.batch,
        sampling_rate=plan.sampling_rate,
        clip_norm=mechanism.clip_norm if isinstance(mechanism, DPSGD) else None,
        noise_multipliers=plan.noise_multipliers,
        release_noise_multiplier=stage.release_noise_multiplier,
        optimizer=describe_optimizer(stage),
    )


def describe_optimizer(stage: Train) -> str:
    """A stage's optimizer with its settings, and which parameters it trains if not all."""
    optimizer = stage.optimizer
    towards = " towards the start" if optimizer.towards == "start" else ""
    floor = f", floor {optimizer.floor:g}" if isinstance(optimizer, AdamBC) else ""
    layers = "" if stage.layers == "all" else f", on parameters named {stage.layers}"
    annealing = " falling to 0" if stage.annealing == "linear" else ""
    return (
        f"{type(optimizer).__name__}, learning rate {optimizer.learning_rate:g}{annealing}, "
        f"weight decay {optimizer.weight_decay:g}{towards}{floor}{layers}"
    )


def _pull(objective: Anchored) -> tuple[str, ...]:
    """The settings of an anchored objective that are not the default."""
    usual = Anchored()
    return (
        *(("the true token left out",) if objective.target == "without-true" else ()),
        *((f"temperature {objective.temperature:g}",) if objective.temperature != usual.temperature else ()),
        *((f"strength {objective.strength:g}",) if objective.strength != usual.strength else ()),
    )


def describe_objective(objective: Objective) -> str:
    """A stage's objective, and how the weight w was chosen."""
    match objective:
        case Uniform():
            return "uniform"
        case Nothing():
            return "none"
        case Anchored():
            return ", ".join(("anchored to the reference", *_pull(objective), f"w = {objective.weight:g}"))
        case Weighted(weight="record"):
            return "weighted, w from each record"
        case Weighted(weight="released"):
            return "weighted, w released"
        case Weighted():
            return f"weighted, w = {objective.weight:g}"
