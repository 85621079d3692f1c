"""The results of `plan` and `harden`, and the notice shown first: the recipe, who chose it, and advice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from atdp_cli.detection.detector import FlaggedShare
from atdp_cli.files.documents import Frozen, copy_fields
from atdp_cli.hardening.plan import Planned
from atdp_cli.privacy.ledger import unprotected_past
from atdp_cli.privacy.wording import advice, guarantee_sentences
from atdp_cli.reporting.document import PrivateReport, ReleaseVerdict, StageEntry
from atdp_cli.reporting.entries import (
    BeforeAfter,
    GuaranteeEntry,
    RanksBeforeAfter,
    UsefulnessEntry,
    guarantee_entries,
)
from atdp_cli.training.objectives import Distilled
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import DPSGD, NonPrivate, TextVariant, Train, reads_records
from atdp_cli.training.search import RangeTest


class HardenPlan(Frozen):
    """The result of `plan`, which `atdp harden --dry-run --json` prints.

    Attributes:
        output: Where the run would write.
        notice: Which recipe is taken and why, and what it does.
        statements: What is guaranteed, a sentence each.
        advice: What the user could do better, a sentence each.
        kept: Which of the detector's flags count, in words; empty for all.
        flagged: In a part of the records.
        records: Those that train, one `unit` each.
        searches: What is searched before a stage, a sentence each.
        trial_steps: At most, for settings that are searched.
        engine: Of clipping; None where nothing is clipped.
        estimated_bytes: The most memory, about; None where the system does not tell.
    """

    schema_version: Literal[1] = 1
    dry_run: Literal[True] = True
    output: str
    recipe: str
    notice: str
    statements: tuple[str, ...]
    advice: tuple[str, ...]
    tier: str
    kept: str = ""
    flagged: FlaggedShare | None = None
    records: int
    held_out: int
    unit: str
    steps: int
    stages: tuple[StageEntry, ...]
    searches: tuple[str, ...]
    trial_steps: int
    guarantees: tuple[GuaranteeEntry, ...]
    delta: float
    insecure_seed: bool
    engine: str | None = None
    estimated_bytes: int | None = None


class HardenSummary(Frozen):
    """The result of `harden`, which `atdp harden --json` prints. Perplexities are of held-out private text.

    Attributes:
        output: OUT/, where the model is.
        release: The verdict of the private report.
        steps: That were taken; repeated ones count once.
        stages: As they were trained, with the settings that were chosen.
        usefulness: What the models can do on held-out text with decoys, as in the private report.
        value_ranks: Of flagged values among decoys; None where they tell nothing.
        ended_early: Why the run took fewer steps than planned, as a sentence.
    """

    schema_version: Literal[1] = 1
    dry_run: Literal[False] = False
    output: str
    release: ReleaseVerdict | None
    recipe: str
    steps: int
    stages: tuple[StageEntry, ...]
    guarantees: tuple[GuaranteeEntry, ...]
    insecure_seed: bool
    perplexity: BeforeAfter
    usefulness: tuple[UsefulnessEntry, ...]
    value_ranks: RanksBeforeAfter | None
    seconds: float
    ended_early: str | None


BETTER = "Where secrets were memorised, decoys measured better: leave --recipe out (docs/choosing.md)."

WITH_BASE = "With the public base that the model comes from, --reference BASE, what is flagged can have an ε."


def notice(planned: Planned) -> str:
    """What the run does and does not do; the recipe and who chose it."""
    name, model = planned.request.recipe_name, planned.request.asked or planned.request.model
    if not planned.request.default:
        return f"Recipe: {name}, as asked. {_removes(planned)}"
    start, unknown = planned.request.model, _unprotected_start(planned)
    if start != model:
        why = "with a public base"
        done = f"Trains a new model from {start} on decoys. {model} is not used: nothing it learnt is in the result."
        if unknown:
            done += f" By its ledger the past of {start} is not public either, so no ε bounds what it memorised."
    elif unknown:
        why = "without a public base"
        done = f"Trains {model} itself on decoys, which hid what it memorised in most of our audits; no ε bounds that."
    else:
        why = "from a public checkpoint"
        done = f"Trains {model} on decoys in place of what the detector flags, and learns what that misses."
    return f"{done} Recipe: {name}, which measured best {why}."


def plan_hints(planned: Planned) -> tuple[str, ...]:
    """Advice to the user before anything is trained, a sentence each."""
    said, skipped = advice(planned.plan.ledger), planned.split.skipped
    hints = tuple(filter(None, (planned.people, _left_out(planned), said)))
    hints = (f"Lines or rows skipped as unreadable: {skipped:,}.", *hints) if skipped else hints
    if not planned.request.default:
        return (*((BETTER,) if _left_in(planned) else ()), *hints)
    return (*((WITH_BASE,) if _unprotected_start(planned) else ()), *hints)


def _left_out(planned: Planned) -> str | None:
    """The sentence that conversations are left out, as a record has more than it may have windows."""
    most, unit = planned.request.max_windows, planned.plan.ledger.unit
    many = sum(bool(record.turns) and record.turns[-1].conversation >= most for record in planned.split.records)
    said = f"{many:,} {unit}s have more than {most} conversations, of which only {most} windows are learnt"
    return f"{said}: raise run.max-windows." if many else None


def _removes(planned: Planned) -> str:
    """Whether memorised text goes, as a sentence."""
    if left := _left_in(planned):
        return left
    if not planned.request.recipe:
        return "It trains nothing."
    if _unprotected_start(planned):
        return (
            f"It trains {planned.request.model} on decoys, which hid what it memorised in most of our audits; "
            "no ε bounds that."
        )
    return "There is nothing memorised to remove, as its start never saw the corpus."


def _left_in(planned: Planned) -> str | None:
    """The sentence that memorised text stays, if a stage reads raw text after an unprotected past, or none reads
    decoys.
    """
    unprotected = "" if not _unprotected_start(planned) else f"{planned.request.model} may have memorised"
    read_again, decoys = False, False
    for stage in planned.request.recipe:
        text = stage.text if reads_records(stage) else None
        decoys |= text is TextVariant.DECOY
        read_again |= text is TextVariant.RAW and bool(unprotected)
        if text is TextVariant.RAW and isinstance(stage.mechanism, NonPrivate) and not unprotected:
            unprotected = f"its stage {stage.name} memorises"
    if not (planned.request.recipe and unprotected) or (decoys and not read_again):
        return None
    return f"It does not remove what {unprotected}{', since it reads raw text' if read_again else ''}."


def _unprotected_start(planned: Planned) -> bool:
    """Whether the starting checkpoint may have memorised raw text: its past is unknown, or its ledger says so."""
    return unprotected_past(planned.plan.ledger.checkpoint_history, planned.inherited)


def plan_summary(planned: Planned) -> HardenPlan:
    """The document of a plan before a model is loaded, so without its memory needs."""
    request, plan = planned.request, planned.plan
    return HardenPlan(
        output=str(request.output),
        recipe=request.recipe_name,
        notice=notice(planned),
        statements=guarantee_sentences(plan.ledger, planned.guarantees),
        advice=plan_hints(planned),
        tier=request.detector.tier.value,
        kept=planned.flags.kept,
        records=planned.split.training,
        held_out=len(planned.split.held_out),
        unit=plan.ledger.unit,
        steps=plan.steps,
        stages=tuple(map(stage_entry, plan.stages)),
        searches=tuple(sentence for stage in plan.training for sentence in _searched(stage)),
        trial_steps=sum(stage.search.most_steps for stage in plan.training if stage.search is not None),
        guarantees=guarantee_entries(planned.guarantees),
        delta=plan.ledger.delta,
        insecure_seed=plan.ledger.insecure_seed,
    )


def _searched(plan: StagePlan) -> Iterator[str]:
    """The search before a stage, and the choice for it, a sentence each."""
    name, search, objective = plan.stage.name, plan.search, plan.stage.objective
    if isinstance(objective, Distilled):
        yield (
            f"The loss of {name} on unflagged text is to {objective.share:.0%} the divergence from what the model "
            "predicts there now, so that it keeps it."
        )
    if search is None:
        return
    if not search.most_trials:
        yield f"Stage {name} has too few steps for trials: η = {plan.stage.optimizer.learning_rate:g}."
        return
    goal = "at which it forgets" if isinstance(search, RangeTest) else "with the least loss on decoyed text"
    yield (
        f"The learning rate of {name} {goal} is searched first, from {min(search.rates):g} to {max(search.rates):g}: "
        f"at most {search.most_trials} trials of {search.steps_per_trial:,} steps."
    )


def stage_entry(plan: StagePlan) -> StageEntry:
    """A planned stage as the report lists it."""
    stage, mechanism = plan.stage, plan.stage.mechanism
    if not plan.steps:
        return StageEntry(name=stage.name, mechanism="none", objective=stage.objective.describe())
    return copy_fields(
        StageEntry,
        plan,
        stage,
        text=stage.text.value if reads_records(stage) else None,
        objective=stage.objective.describe(),
        mechanism="plain" if isinstance(mechanism, NonPrivate) else "dp-sgd" if reads_records(stage) else "noise",
        clip_norm=mechanism.clip_norm if isinstance(mechanism, DPSGD) else None,
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


def result_summary(folder: Path, report: PrivateReport, *, steps: int) -> HardenSummary:
    """The document of a finished run.

    Args:
        folder: Where the model is.
        report: The whole report of the run.
    """
    of = {"output": str(folder), "release": report.release, "steps": steps}
    return copy_fields(HardenSummary, report.public, report, schema_version=1, **of)
