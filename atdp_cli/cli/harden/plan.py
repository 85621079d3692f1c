"""What `atdp harden` says before it trains: what the run will and will not do, its settings, what it needs, advice."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from atdp_cli.cli.harden.words import sigmas, stage_entries

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from atdp_cli.jobs.detector import FlaggedShare
    from atdp_cli.jobs.harden.request import Planned
    from atdp_cli.report.document import StageEntry
    from atdp_cli.report.summary.harden import HardenPlan
    from atdp_cli.training.plan import StagePlan

NONE = "–"


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a run will need, about, and how much of its text is flagged.

    Attributes:
        memory: In bytes, at most; None where the system does not tell.
        flagged: Of the first part of some records; None where spans come from a file.
    """

    memory: int | None = None
    flagged: "FlaggedShare | None" = None


def show_effect(planned: "Planned", notice: str, console: "Console") -> None:
    """What the run will and will not do: whether memorised text goes, and which ε it has for whom."""
    from atdp_cli.privacy.wording import guarantee_sentences

    console.print(notice)
    for line in guarantee_sentences(planned.plan.ledger, planned.guarantees):
        console.print(line)


def show_plan(planned: "Planned", engine: str, needs: Needs, hints: tuple[str, ...], console: "Console") -> None:
    """The settings of the stages, what is flagged, what the run needs and writes, and what would be better."""
    from atdp_cli.files.private import PRIVATE, beside
    from atdp_cli.report.happened import clipped

    console.print(_table(planned))
    for line in _tuning(planned):
        console.print(line)
    console.print(_flagged(planned, needs))
    split = planned.split
    clipping = f"by the engine {engine}" if clipped(stage_entries(planned)) else "without clipping"
    memory = "" if needs.memory is None else f", with {needs.memory / 1e9:.1f} GB of memory"
    console.print(
        f"{split.training:,} training records, one {planned.plan.ledger.unit} each; {len(split.held_out):,} held out. "
        f"Training {clipping}{memory}."
    )
    output = planned.request.output
    console.print(f"Output: {output}, and {beside(output, PRIVATE)}, which stays with you.", soft_wrap=True)
    for hint in hints:
        console.print(f"Advice: {hint}")


def plan_summary(
    planned: "Planned", notice: str, engine: str | None, needs: Needs | None, hints: tuple[str, ...]
) -> "HardenPlan":
    """The plan as `--json` writes it.

    Args:
        notice: What is said first: which recipe, why, and what it does.
        engine: That clips; None where no model was loaded.
        needs: None where no model was loaded.
        hints: From `plan_hints`.
    """
    from atdp_cli.report.guarantee_entry import guarantee_entries
    from atdp_cli.report.happened import clipped
    from atdp_cli.report.summary.harden import FlaggedEntry, HardenPlan

    stages = stage_entries(planned)
    return HardenPlan(
        output=str(planned.request.output),
        recipe=planned.request.recipe_name,
        notice=notice,
        advice=hints,
        tier=planned.request.detector.tier.value,
        flagged=None if needs is None or needs.flagged is None else FlaggedEntry(**asdict(needs.flagged)),
        steps=planned.plan.steps,
        stages=stages,
        trial_steps=sum(stage.search.most_steps for stage in planned.plan.training if stage.search is not None),
        guarantees=guarantee_entries(planned.guarantees),
        insecure_seed=planned.plan.ledger.insecure_seed,
        engine=engine if clipped(stages) else None,
        estimated_bytes=None if needs is None else needs.memory,
    )


def _table(planned: "Planned") -> "Table":
    """A row a stage. C and w stand there where a stage has them."""
    from rich import box
    from rich.table import Table

    rows = [_settings(plan) for plan in planned.plan.stages]
    more = [name for name in ("C", "w") if any(row[name] != NONE for row in rows)]
    head = ("stage", "text", "epochs", "steps", "batch", "η", *more, "σ")
    plain: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(*head, title="Plan", title_justify="left", **plain)
    for row, entry in zip(rows, stage_entries(planned), strict=True):
        cells = (entry.name, entry.text or "none", str(entry.epochs), str(entry.steps), str(entry.batch), row["η"])
        table.add_row(*cells, *(row[name] for name in more), _noise(entry))
    return table


def _settings(plan: "StagePlan") -> dict[str, str]:
    """η, C and w of a stage; a dash for what it has not."""
    stage = plan.stage
    optimizer, mechanism = getattr(stage, "optimizer", None), getattr(stage, "mechanism", None)
    search = getattr(plan, "search", None)
    searched = search is not None and search.most_trials
    weight = getattr(getattr(stage, "objective", None), "weight", None)
    clip_norm = getattr(mechanism, "clip_norm", None)
    return {
        "η": NONE if optimizer is None else "searched" if searched else f"{optimizer.learning_rate:g}",
        "C": NONE if clip_norm is None else f"{clip_norm:g}",
        "w": NONE if weight is None else weight if isinstance(weight, str) else f"{weight:g}",
    }


def _noise(entry: "StageEntry") -> str:
    if entry.noise_multipliers or entry.release_noise_multiplier is None:
        return sigmas(entry.noise_multipliers)
    return f"{entry.release_noise_multiplier:.2f} once"


def _tuning(planned: "Planned") -> "Iterator[str]":
    """What --tune searches before a stage, and what it chose for it, a line each."""
    from atdp_cli.training.objectives.kinds import Distilled
    from atdp_cli.training.tuning.range_test import RangeTest

    for stage in planned.plan.training:
        name, search, objective = stage.stage.name, stage.search, stage.stage.objective
        if isinstance(objective, Distilled):
            yield (
                f"The loss of {name} on unflagged text is to {objective.share:.0%} the divergence from what the model "
                "predicts there now, so that it keeps it."
            )
        if search is None:
            continue
        trials = search.most_trials
        if trials:
            goal = "at which it forgets" if isinstance(search, RangeTest) else "with the least loss on decoyed text"
            yield (
                f"The learning rate of {name} {goal} is searched first, from {min(search.rates):g} to "
                f"{max(search.rates):g}: at most {trials} trials of {search.steps_per_trial:,} steps."
            )
        else:
            yield f"Stage {name} has too few steps for trials: η = {stage.stage.optimizer.learning_rate:g}."


def _flagged(planned: "Planned", needs: Needs) -> str:
    """The tier, and how much of the text it flags."""
    if needs.flagged is None:
        return f"What is flagged: the spans of {planned.request.spans}."
    flagged = needs.flagged
    what = (
        f"Tier {planned.request.detector.tier.value} flags {flagged.share:.0%} of the characters of {flagged.records:,}"
    )
    if flagged.records < len(planned.split.records):
        what += " records, evenly spread."
    else:
        what += " records, which are all."
    return what
