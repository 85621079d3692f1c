"""The reports of a run, from its plan, its ledger and what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from atdp_cli.jobs.harden.request import HardenRequest, Planned, corrected
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.accountant import epsilons, moments
from atdp_cli.privacy.guarantee import POISSON, Guarantee, guarantee_sentences
from atdp_cli.privacy.ledger import Ledger, ReadModel, private_events
from atdp_cli.report.document import (
    CROSSCHECKED,
    NOT_COVERED,
    REVIEWED,
    BeforeAfter,
    CardEntry,
    CrossCheckEntry,
    DetectorEntry,
    EpsilonEntry,
    EpsilonPoint,
    HardwareEntry,
    PerplexityEntry,
    PrivateReport,
    PublicReport,
    ReferenceEntry,
    SamplingEntry,
    StageEntry,
    StagePrivate,
    TokenEntry,
    guarantee_entries,
)
from atdp_cli.report.numbers import json_numbers
from atdp_cli.report.wording import lay_summary
from atdp_cli.text.crosscheck.request import public_name
from atdp_cli.text.redaction.placeholders import Style
from atdp_cli.training.clipping.select import SelectedEngine
from atdp_cli.training.objective import Weighing
from atdp_cli.training.plan import AnyPlan, InterpolatePlan, StagePlan
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


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """What a run measured, and what it found on its way.

    Attributes:
        start: SHA-256 of each weight file of the starting checkpoint.
        flagged_spans: Of the training records.
        unread_records: Training records without a token to learn from.
        listed_terms: Terms of the lists that corrected the detector, as they are at the end.
        interruptions: How often the run was interrupted and gone on with.
        repeated_steps: Steps with noise that were taken again for it.
        ended_early: Why the run took fewer steps than planned, as a sentence; None where it did not.
    """

    before: Perplexity
    after: Perplexity
    results: Sequence[StageResult]
    seconds: float
    sensitive_share: float
    pipeline: str | None
    planted: tuple[int, ...] | None
    weighings: Sequence[Weighing]
    engine: SelectedEngine
    start: Mapping[str, str]
    sentence: tuple[TokenEntry, ...]
    hardware: HardwareEntry
    card: CardEntry
    flagged_spans: int
    unread_records: int
    listed_terms: int
    interruptions: int = 0
    repeated_steps: int = 0
    ended_early: str | None = None


def _engine_check(engine: SelectedEngine) -> str:
    return _ENGINE_CHECK[engine.name == "loop"] + (_IN_HALF if engine.precision == "bfloat16" else "")


def public_report(planned: Planned, ledger: Ledger, found: Sequence[Guarantee], measured: Measurements) -> PublicReport:
    """The part that may be published with the model."""
    request = planned.request
    private = private_events(ledger.events)
    return PublicReport(
        summary=lay_summary(ledger, found),
        verdict=guarantee_sentences(ledger, found),
        guarantees=guarantee_entries(found),
        epsilon=EpsilonEntry.model_validate(json_numbers(asdict(epsilons(private, ledger.delta, grid=ledger.grid))))
        if private
        else None,
        delta=ledger.delta,
        unit=ledger.unit,
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        prior=ledger.prior,
        inherited_ledger=planned.inherited is not None,
        references=_references(ledger),
        recipe=request.recipe_name,
        stages=tuple(
            stage_entry(stage, request.style).model_copy(
                update={
                    "released_share": one.alpha,
                    "released_weight": one.weight,
                    "stopped_after": result.stopped_after,
                    "ended_after": result.ended_after if result.stopped_after is None else None,
                }
            )
            for stage, one, result in zip(planned.plan.stages, measured.weighings, measured.results, strict=True)
        ),
        detector=_detector_entry(request, measured.pipeline),
        engine=measured.engine.name,
        engines_refused=measured.engine.refused,
        engine_check=_engine_check(measured.engine),
        sampling=_sampling(planned, ledger),
        noise_source="insecure seed: nothing is protected"
        if ledger.insecure_seed
        else "AES-256-CTR keyed by the operating system",
        insecure_seed=ledger.insecure_seed,
        epsilon_over_steps=tuple(
            EpsilonPoint.model_validate(json_numbers(asdict(one)))
            for one in (moments(private, ledger.delta, grid=ledger.grid) if private else ())
        ),
        sentence=measured.sentence,
        passes=_passes(planned, measured.results),
        repeated_steps=measured.repeated_steps,
        ended_early=measured.ended_early,
        start=dict(measured.start),
        weights=ledger.seal,
        software=ledger.software,
        hardware=measured.hardware,
        command=request.command_without_paths,
        card=measured.card,
        created=ledger.created or "",
        not_covered=_not_covered(request),
    )


def _passes(planned: Planned, results: Sequence[StageResult]) -> float:
    """How often a record is read by all training stages together, on average."""
    reading = [
        (stage, stage.steps if result.ended_after is None else result.ended_after)
        for stage, result in zip(planned.plan.stages, results, strict=True)
        if isinstance(stage, StagePlan) and reads_records(stage.stage)
    ]
    return float(
        sum(
            stage.stage.epochs * steps / stage.steps if stage.sampling_rate is None else steps * stage.sampling_rate
            for stage, steps in reading
        )
    )


def _sampling(planned: Planned, ledger: Ledger) -> SamplingEntry | None:
    """None where no stage draws records in secret."""
    if not any(stage.sampling_rate is not None and reads_records(stage.stage) for stage in planned.plan.training):
        return None
    return SamplingEntry(assumed=POISSON, run=SEEDED_SAMPLE if ledger.insecure_seed else HIDDEN_SAMPLE)


def _references(ledger: Ledger) -> tuple[ReferenceEntry, ...]:
    read = {tuple(event.weights.items()): event for event in ledger.events if isinstance(event, ReadModel)}
    return tuple(ReferenceEntry(past=event.past, weights=event.weights) for event in read.values())


def _not_covered(request: HardenRequest) -> tuple[str, ...]:
    crosschecked = () if request.detector.crosscheck is None else (CROSSCHECKED,)
    reviewed = () if request.review is None else (REVIEWED,)
    return (*NOT_COVERED, *crosschecked, *reviewed)


def _detector_entry(request: HardenRequest, pipeline: str | None) -> DetectorEntry:
    asked = request.detector.crosscheck
    return DetectorEntry(
        tier=request.detector.tier,
        pipeline=pipeline,
        lists=corrected(request),
        crosscheck=None if asked is None else CrossCheckEntry(model=public_name(asked), masked=asked.masked),
    )


def private_report(public: PublicReport, measured: Measurements, command: tuple[str, ...] = ()) -> PrivateReport:
    """The whole report, for the owner of the records.

    Args:
        command: The whole command line.
    """
    return PrivateReport(
        public=public,
        seconds=measured.seconds,
        perplexity=BeforeAfter(before=perplexity_entry(measured.before), after=perplexity_entry(measured.after)),
        sensitive_share=measured.sensitive_share,
        stages=tuple(
            StagePrivate(
                name=entry.name,
                perplexities=tuple(perplexity_entry(one) for one in result.perplexities),
                mean_norms=result.mean_norms,
                not_finite=result.not_finite,
                seconds=result.seconds,
                processor_seconds=result.processor_seconds,
                tokens=result.tokens,
                clamped=weighing.clamped,
                sensitive_weight=weighing.share,
            )
            for entry, result, weighing in zip(public.stages, measured.results, measured.weighings, strict=True)
        ),
        planted_canaries=measured.planted,
        flagged_spans=measured.flagged_spans,
        unread_records=measured.unread_records,
        listed_terms=measured.listed_terms,
        interruptions=measured.interruptions,
        command=command,
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


def perplexity_entry(found: Perplexity) -> PerplexityEntry:
    """A perplexity as the report lists it."""
    return PerplexityEntry.model_validate(json_numbers(asdict(found)))


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
    """What of an anchored objective is not as usual."""
    usual = Anchored()
    return (
        *(("the true token left out",) if objective.target == "without-true" else ()),
        *((f"temperature {objective.temperature:g}",) if objective.temperature != usual.temperature else ()),
        *((f"strength {objective.strength:g}",) if objective.strength != usual.strength else ()),
    )


def describe_objective(objective: Objective) -> str:
    """What a stage asks of the tokens, and how the weight w was chosen."""
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
