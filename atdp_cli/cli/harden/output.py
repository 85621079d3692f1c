"""What `atdp harden` shows of its plan and of its result, to people and as JSON."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from atdp_cli.cli.terminal.console import figure, write_json
from atdp_cli.cli.terminal.escape import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from atdp_cli.audit.memory.value_ranks import ComparedRanks
    from atdp_cli.jobs.harden.request import Planned
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.model.perplexity import Perplexity
    from atdp_cli.report.document import StageEntry
    from atdp_cli.report.harden_summary import HardenPlan, HardenSummary, RoundEntry
    from atdp_cli.report.measured import BeforeAfter

LONG_RUN_SECONDS = 30 * 60


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a run will need, about.

    Attributes:
        seconds: Of training.
        memory: In bytes, at most; None where nobody asked or the system does not tell.
    """

    seconds: float
    memory: int | None = None


def show_plan(planned: "Planned", engine: str, needs: Needs, console: "Console") -> None:
    """What the run will do, what it costs in ε, and about how long it takes."""
    from rich.table import Table

    from atdp_cli.privacy.statement import advice, guarantee_sentences
    from atdp_cli.report.happened import clipped

    table = Table("stage", "text", "epochs", "steps", "records a step", "σ", title="Plan", title_justify="left")
    for entry in _entries(planned):
        table.add_row(
            entry.name,
            entry.text or "none",
            str(entry.epochs),
            str(entry.steps),
            str(entry.batch),
            _sigmas(entry),
        )
    console.print(table)
    split = planned.split
    clipping = f"by the engine {engine}" if clipped(_entries(planned)) else "without clipping"
    memory = "" if needs.memory is None else f", with {needs.memory / 1e9:.1f} GB of memory"
    console.print(
        f"{split.training:,} training records, one {planned.plan.ledger.unit} each; {len(split.held_out):,} held out. "
        f"About {_duration(needs.seconds)} of training {clipping}{memory}."
    )
    for search in _searches(planned):
        console.print(search)
    for line in guarantee_sentences(planned.plan.ledger, planned.guarantees):
        console.print(line)
    if hint := advice(planned.plan.ledger):
        console.print(hint)
    if needs.seconds > LONG_RUN_SECONDS:
        console.print("That is long: --lora-rank 8 trains far fewer parameters, --max-records takes fewer records.")


def _searches(planned: "Planned") -> "Iterator[str]":
    """What is searched before a stage, a line each."""
    for stage in planned.plan.training:
        if (search := stage.search) is None:
            continue
        name, trials = stage.stage.name, search.most_trials
        if trials:
            yield (
                f"The learning rate of {name} is searched on decoyed text first, from {min(search.rates):g} to "
                f"{max(search.rates):g}: at most {trials} trials of {search.steps_per_trial:,} steps."
            )
        else:
            yield f"Stage {name} has too few steps for trials: η = {stage.stage.optimizer.learning_rate:g}."


def _sigmas(entry: "StageEntry") -> str:
    sigmas = entry.noise_multipliers
    if sigmas:
        low, high = f"{min(sigmas):.2f}", f"{max(sigmas):.2f}"
        return low if low == high else f"{low}–{high}"
    return "none" if entry.release_noise_multiplier is None else f"{entry.release_noise_multiplier:.2f} once"


def show_result(finished: "HardenResult", console: "Console") -> None:
    """What the run has done."""
    from rich.table import Table

    from atdp_cli.files.private import PRIVATE, beside
    from atdp_cli.report.document import HTML_FILE

    table = Table("held-out perplexity", "all", "sensitive", "other", title="Result", title_justify="left")
    rows = (
        ("before", finished.before),
        ("after", finished.after),
        ("before, with decoys", finished.decoyed_before),
        ("after, with decoys", finished.decoyed_after),
    )
    for name, perplexity in rows:
        if perplexity is not None:
            cells = (perplexity.all, perplexity.sensitive, perplexity.other)
            table.add_row(name, *(figure(cell) for cell in cells))
    console.print(table)
    if finished.ranks_before is not None and finished.ranks_after is not None:
        console.print(_ranks(finished.ranks_before, finished.ranks_after))
    if finished.failed is not None:
        console.print(finished.failed)
    if finished.ended_early is not None:
        console.print(finished.ended_early)
    console.print(f"{finished.steps} steps in {_duration(finished.seconds)}.")
    console.print(f"Report: {finished.output / HTML_FILE}", soft_wrap=True)
    console.print(f"Keep private: {beside(finished.output, PRIVATE)}", soft_wrap=True)
    if any(each.epsilon == float("inf") for each in finished.guarantees if each.scope == "end_to_end"):
        console.print(
            "Not to be called releasable: no finite ε holds end to end. Audit it with atdp audit-canary, or map what "
            "it still knows with atdp audit-corpus."
        )


def _ranks(before: "ComparedRanks", after: "ComparedRanks") -> "Table":
    """What the model remembers of flagged values: nothing where both columns are alike."""
    from rich.table import Table

    title = "Share of decoys likelier than the flagged value"
    table = Table("", "training records", "held-out records", "p", title=title, title_justify="left")
    for name, ranks in (("before", before), ("after", after)):
        table.add_row(name, figure(ranks.training), figure(ranks.held_out), figure(ranks.p_value))
    table.caption = "Held-out records show what chance is; p: that training records are lower by chance."
    table.caption_justify = "left"
    return table


def plan_summary(planned: "Planned", notice: str, engine: str | None, needs: Needs | None) -> "HardenPlan":
    """The plan as `--json` writes it.

    Args:
        notice: What is said first: which recipe, why, and what it does.
        engine: That clips; None where no model was loaded.
        needs: None where no model was loaded.
    """
    from atdp_cli.report.guarantee_entry import guarantee_entries
    from atdp_cli.report.happened import clipped
    from atdp_cli.report.harden_summary import HardenPlan

    stages = _entries(planned)
    return HardenPlan(
        output=str(planned.request.output),
        recipe=planned.request.recipe_name,
        notice=notice,
        steps=planned.plan.steps,
        stages=stages,
        trial_steps=sum(stage.search.most_steps for stage in planned.plan.training if stage.search is not None),
        guarantees=guarantee_entries(planned.guarantees),
        insecure_seed=planned.plan.ledger.insecure_seed,
        engine=engine if clipped(stages) else None,
        estimated_seconds=None if needs is None else needs.seconds,
        estimated_bytes=None if needs is None else needs.memory,
    )


def write_result(
    planned: "Planned",
    finished: "HardenResult",
    rounds: "tuple[RoundEntry, ...] | None",
    console: "Console",
    *,
    as_json: bool,
) -> None:
    """Show a finished run; standard output gets its folder, or all of it as JSON."""
    show_result(finished, console)
    if as_json:
        write_json(result_summary(planned, finished, rounds).model_dump(mode="json"))
    else:
        typer.echo(escaped(str(finished.output)))


def result_summary(
    planned: "Planned", finished: "HardenResult", rounds: "tuple[RoundEntry, ...] | None"
) -> "HardenSummary":
    """A finished run as `--json` writes it.

    Args:
        rounds: None where it was not run in rounds.
    """
    from dataclasses import asdict

    from atdp_cli.report.guarantee_entry import guarantee_entries
    from atdp_cli.report.harden_summary import HardenSummary
    from atdp_cli.report.measured import RanksBeforeAfter, RanksEntry

    before, after = finished.ranks_before, finished.ranks_after
    return HardenSummary(
        output=str(finished.output),
        recipe=planned.request.recipe_name,
        steps=finished.steps,
        stages=_entries(planned),
        guarantees=guarantee_entries(finished.guarantees),
        insecure_seed=finished.ledger.insecure_seed,
        perplexity=_before_after(finished.before, finished.after),
        decoyed_perplexity=None
        if finished.decoyed_before is None or finished.decoyed_after is None
        else _before_after(finished.decoyed_before, finished.decoyed_after),
        value_ranks=None
        if before is None or after is None
        else RanksBeforeAfter(before=RanksEntry(**asdict(before)), after=RanksEntry(**asdict(after))),
        seconds=finished.seconds,
        failed=finished.failed,
        ended_early=finished.ended_early,
        rounds=rounds,
    )


def _before_after(before: "Perplexity", after: "Perplexity") -> "BeforeAfter":
    from dataclasses import asdict

    from atdp_cli.report.measured import BeforeAfter, PerplexityEntry
    from atdp_cli.report.numbers import json_numbers

    first, second = (PerplexityEntry(**json_numbers(asdict(each))) for each in (before, after))
    return BeforeAfter(before=first, after=second)


def _entries(planned: "Planned") -> "tuple[StageEntry, ...]":
    from atdp_cli.jobs.harden.describe import stage_entry

    return tuple(stage_entry(stage, planned.request.style) for stage in planned.plan.stages)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
