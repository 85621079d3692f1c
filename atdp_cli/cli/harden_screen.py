"""The terminal output of `atdp harden`: before it trains the plan and what it needs, afterwards the result."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.cli.console import figure
from atdp_cli.files.private import PRIVATE, beside

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from atdp_cli.hardening.summary import HardenPlan, HardenSummary
    from atdp_cli.reporting.document import StageEntry
    from atdp_cli.reporting.entries import RanksBeforeAfter, UsefulnessEntry


def show_plan(plan: "HardenPlan", console: "Console") -> None:
    """Print what the run will and will not do, its ε and for whom it holds, and its stages."""
    for line in (plan.notice, *plan.statements):
        console.print(line)
    console.print(_stages(plan.stages))
    for stage in plan.stages:
        settings = "" if stage.optimizer is None else f"; {stage.optimizer}"
        console.print(f"{stage.name}: {stage.objective}{settings}.")
    for line in plan.searches:
        console.print(line)
    console.print(f"{plan.records:,} training records, one {plan.unit} each; {plan.held_out:,} held out.")
    console.print(
        f"Output: {plan.output}, and {beside(Path(plan.output), PRIVATE)}, which stays with you.", soft_wrap=True
    )


def show_needs(plan: "HardenPlan", spans: Path | None, console: "Console") -> None:
    """Print the share of flagged text, the clipping engine, the memory needed, and advice."""
    if plan.flagged is None:
        console.print(f"What is flagged: the spans of {spans}.")
    else:
        kept = f" ({plan.kept})" if plan.kept else ""
        console.print(
            f"Tier {plan.tier}{kept} flags {plan.flagged.share:.0%} of the characters of {plan.flagged.records:,} "
            "records."
        )
    clipping = "without clipping" if plan.engine is None else f"by the engine {plan.engine}"
    memory = "" if plan.estimated_bytes is None else f", with about {plan.estimated_bytes / 1e9:.1f} GB of memory"
    console.print(f"It trains {clipping}{memory}.")
    for hint in plan.advice:
        console.print(f"Advice: {hint}")


def _stages(stages: "Sequence[StageEntry]") -> "Table":
    from rich import box
    from rich.table import Table

    head = ("stage", "text", "epochs", "steps", "batch", "C", "σ")
    table = Table(
        *head,
        title="Plan",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for stage in stages:
        clip_norm = "–" if stage.clip_norm is None else f"{stage.clip_norm:g}"
        cells = (stage.name, stage.text or "none", str(stage.epochs), str(stage.steps), str(stage.batch), clip_norm)
        table.add_row(*cells, _noise(stage))
    return table


def _noise(stage: "StageEntry") -> str:
    """The noise multipliers of a stage: one, the range of several, that of a release, or none."""
    if not stage.noise_multipliers:
        return "none" if stage.release_noise_multiplier is None else f"{stage.release_noise_multiplier:.2f} once"
    low, high = f"{min(stage.noise_multipliers):.2f}", f"{max(stage.noise_multipliers):.2f}"
    return low if low == high else f"{low}–{high}"


def show_result(result: "HardenSummary", console: "Console") -> None:
    """Print the result of a run."""
    from rich.table import Table

    from atdp_cli.reporting.document import HTML_FILE
    from atdp_cli.reporting.html import VERDICTS

    table = Table("held-out perplexity", "all", "sensitive", "other", title="Result", title_justify="left")
    entries = [("its start", result.perplexity.before), ("this model", result.perplexity.after)]
    entries += [(f"{entry.model}, with decoys", entry.perplexity) for entry in result.usefulness]
    for name, entry in entries:
        table.add_row(name, figure(entry.all), figure(entry.sensitive), figure(entry.other))
    console.print(table)
    if result.usefulness:
        console.print(usefulness_table(result.usefulness))
    if result.value_ranks is not None:
        console.print(_ranks(result.value_ranks))
    if result.ended_early is not None:
        console.print(result.ended_early)
    console.print(f"{result.steps} steps in {_duration(result.seconds)}.")
    console.print(f"Report: {Path(result.output) / HTML_FILE}", soft_wrap=True)
    console.print(f"Keep private: {beside(Path(result.output), PRIVATE)}", soft_wrap=True)
    if result.release is not None:
        console.print(f"{VERDICTS[result.release.verdict]}. {result.release.reason}", style="bold")
        console.print("Audit it with atdp audit-canary, or map what it still knows with atdp audit-corpus.")


def usefulness_table(usefulness: "Sequence[UsefulnessEntry]") -> "Table":
    """A table of how often models say a value again that stands in a record before."""
    from rich.table import Table

    title = "Repeated values of held-out records with decoys"
    table = Table("", "said right", "of", "95 %", "tokens right", title=title, title_justify="left")
    for entry in usefulness:
        within = "too few to tell" if entry.within is None else "–".join(f"{share:.0%}" for share in entry.within)
        tokens = f"{entry.right / entry.tokens:.0%}" if entry.tokens else "–"
        table.add_row(entry.model, f"{entry.whole:,}", f"{entry.values:,}", within, tokens)
    return table


def _ranks(ranks: "RanksBeforeAfter") -> "Table":
    """Print how much the model remembers of flagged values: nothing where both columns are alike."""
    from rich.table import Table

    title = "Share of decoys likelier than the flagged value"
    table = Table("", "training records", "held-out records", "p", title=title, title_justify="left")
    for name, entry in (("before", ranks.before), ("after", ranks.after)):
        table.add_row(name, figure(entry.training), figure(entry.held_out), figure(entry.p_value))
    table.caption = "Held-out records show what chance is; p: that training records are lower by chance."
    table.caption_justify = "left"
    return table


def _duration(seconds: float) -> str:
    """`80 s`, `7 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
