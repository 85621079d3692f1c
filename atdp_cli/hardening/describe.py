"""A plan in the words of the report: its stages, its sampling, its detector. Loads no torch."""

from typing import TYPE_CHECKING, Any

from atdp_cli.detection.crosscheck.request import public_name
from atdp_cli.detection.detector import human_input
from atdp_cli.detection.scan import pipeline_name
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.reporting.document import (
    CROSSCHECKED,
    FLOATING_NOISE,
    NOT_COVERED,
    REVIEWED,
    CrossCheckEntry,
    DetectorEntry,
    StageEntry,
)
from atdp_cli.reporting.entries import TunedEntry
from atdp_cli.training.plan import StagePlan, with_chosen_rate
from atdp_cli.training.recipe import DPSGD, NonPrivate, Train, reads_records

if TYPE_CHECKING:
    from atdp_cli.training.clip.select import SelectedEngine
    from atdp_cli.training.state import StageResult


_ENGINE_CHECK = {
    False: "agreed with clipping one record at a time, on random tokens, before the first step",
    True: "clips one record at a time",
}

_IN_HALF = "; layers compute in bfloat16, all that privacy rests on in float32"


def engine_statement(engine: "SelectedEngine") -> str:
    """How the clipping engine was checked, and in which precision it computes."""
    return _ENGINE_CHECK[engine.name == "per-record"] + (_IN_HALF if engine.precision == "bfloat16" else "")


def not_covered(request: SettledRequest, *, noise: bool) -> tuple[str, ...]:
    """The limits of ε, a sentence each."""
    floating = (FLOATING_NOISE,) if noise else ()
    crosschecked = () if request.detector.crosscheck is None else (CROSSCHECKED,)
    reviewed = () if request.review is None else (REVIEWED,)
    return (*NOT_COVERED, *floating, *crosschecked, *reviewed)


def detector_entry(request: SettledRequest, pipeline: Any) -> DetectorEntry:
    """The detector as the report lists it, with its pipeline only if it found the spans."""
    crosscheck = request.detector.crosscheck
    return DetectorEntry(
        tier=request.detector.tier,
        pipeline=None if request.spans is not None else pipeline_name(pipeline),
        lists=bool(
            human_input(
                request.detector,
                spans=request.spans is not None,
                extra_spans=bool(request.extra_spans),
                review=request.review is not None,
            )
        ),
        crosscheck=None
        if crosscheck is None
        else CrossCheckEntry(model=public_name(crosscheck), masked=not crosscheck.send_unmasked),
    )


def trained_entry(plan: StagePlan, result: "StageResult") -> StageEntry:
    """A trained stage as the report lists it, with the settings that were chosen."""
    tuned = result.tuned
    if tuned is not None:
        plan = with_chosen_rate(plan, tuned.learning_rate)
    return stage_entry(plan).model_copy(
        update={
            "tuned": None
            if tuned is None
            else TunedEntry(
                learning_rate=tuned.learning_rate,
                chosen_on=tuned.chosen_on,
                trials=len(tuned.trials),
                steps=tuned.steps,
            ),
            "restored_epoch": result.restored_epoch,
            "ended_after": result.ended_after,
        }
    )


def stage_entry(plan: StagePlan) -> StageEntry:
    """A planned stage as the report lists it."""
    stage, mechanism = plan.stage, plan.stage.mechanism
    if not plan.steps:
        return StageEntry(name=stage.name, mechanism="none", objective=stage.objective.describe())
    return StageEntry(
        name=stage.name,
        text=stage.text.value if reads_records(stage) else None,
        objective=stage.objective.describe(),
        mechanism="plain" if isinstance(mechanism, NonPrivate) else "dp-sgd" if reads_records(stage) else "noise",
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
    """A stage's optimizer with its settings."""
    optimizer = stage.optimizer
    annealing = " falling to 0" if stage.annealing == "linear" else ""
    annealing += "" if stage.warmup is None else f" after a warm-up over {stage.warmup:.0%} of the steps"
    return (
        f"{type(optimizer).__name__}, learning rate {optimizer.learning_rate:g}{annealing}, "
        f"weight decay {optimizer.weight_decay:g}"
    )
