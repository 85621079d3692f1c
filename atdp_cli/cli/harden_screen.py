"""The terminal output of `atdp harden`: before it trains the plan and what it needs, afterwards the result."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from atdp_cli.cli.console import WITHOUT_EDGES, figure, make_table, show_flagged
from atdp_cli.cli.escape import escaped
from atdp_cli.corpus.edits import EditedText
from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.summary import HardenPlan, HardenSummary
from atdp_cli.privacy.wording import OTHER_LINES, SCOPES
from atdp_cli.reporting.document import HTML_FILE, PrivateReport, StageEntry
from atdp_cli.reporting.entries import RanksBeforeAfter, UsefulnessEntry
from atdp_cli.reporting.html import VERDICTS, render_value
from atdp_cli.reporting.wording import protected_kinds
from atdp_cli.training.recipe import TextVariant


def show_plan(plan: HardenPlan, console: Console, *, explain: bool) -> None:
    """Print what the run will and will not do: what it protects, its ε and its cost.

    Args:
        explain: Also print each guarantee as a sentence, the stages and their settings.
    """
    console.print(plan.notice)
    console.print(make_table(("", ""), _decision(plan), title="Plan", show_header=False, **WITHOUT_EDGES))
    if explain:
        _explain(plan, console)
    console.print(
        f"Output: {plan.output}, and {beside(Path(plan.output), PRIVATE)}, which stays with you.", soft_wrap=True
    )


def _decision(plan: HardenPlan) -> Iterator[tuple[str, str]]:
    """What to know of a plan before it runs, a row each."""
    kinds = protected_kinds(plan.guarantees, plan.unit, insecure_seed=plan.insecure_seed)
    for head, protected in (("protects", True), ("does not protect", False)):
        says = [f"{kind.name}: {kind.says}" for kind in kinds if kind.protected == protected]
        nothing = "nothing" if protected else OTHER_LINES.format(unit=plan.unit)
        yield from zip([head, *[""] * len(says)], says or [nothing], strict=False)
    scopes = [guarantee for guarantee in plan.guarantees if guarantee.scope != "increment"]
    epsilons = (f"{SCOPES[each.scope]} {render_value(each.epsilon, 'epsilon')}" for each in scopes)
    yield "ε", f"{', '.join(epsilons)}; for one {plan.unit}, δ = {plan.delta:g}"
    trials = f", and at most {plan.trial_steps:,} to choose the learning rate" if plan.trial_steps else ""
    yield "cost", f"{plan.steps:,} steps on {plan.records:,} {plan.unit}s{trials}; {plan.held_out:,} held out"
    yield "next", "audit the result: atdp plant-canary before the run, atdp audit-canary after it"


def _explain(plan: HardenPlan, console: Console) -> None:
    for line in plan.statements:
        console.print(line)
    console.print(_stages(plan.stages))
    for stage in plan.stages:
        settings = "" if stage.optimizer is None else f"; {stage.optimizer}"
        console.print(f"{stage.name}: {stage.objective}{settings}.")
    for line in plan.searches:
        console.print(line)


def show_needs(plan: HardenPlan, spans: Path | None, console: Console) -> None:
    """Print the share of flagged text and its labels, the clipping engine, the memory needed, and advice."""
    if plan.flagged is not None:
        kept = f" ({plan.kept})" if plan.kept else ""
        flags = f"Tier {plan.tier}{kept}" if spans is None else f"The file {spans}"
        console.print(
            f"{flags} flags {plan.flagged.share:.0%} of the characters of "
            f"{plan.flagged.records:,} of {plan.records + plan.held_out:,} records."
        )
        show_flagged(plan.flagged.found, console)
    clipping = "without clipping" if plan.engine is None else f"by the engine {plan.engine}"
    memory = "" if plan.estimated_bytes is None else f", with about {plan.estimated_bytes / 1e9:.1f} GB of memory"
    console.print(f"It trains {clipping}{memory}.")
    for hint in plan.advice:
        console.print(f"Advice: {hint}")


EXCERPT, AROUND = 400, 60
"""Characters of a record that a preview shows, and those before its first flagged value and after the last shown."""


def show_preview(planned: Planned, sample: Sequence[FlaggedRecord], most: int | None, console: Console) -> None:
    """Print records before and after replacement, each from its first flagged value on, with flagged values in «».

    Args:
        sample: Records as they are flagged; none in other processes than the first.
        most: How many to show; None for none.
    """
    from atdp_cli.hardening.encode import preview

    if most is None or not sample:
        return
    stage, records = preview(planned.request.recipe, sample, most)
    says = f"Preview: stage {stage.name} reads {stage.text} text. Flagged values are in «»."
    drawn = " The run draws decoys of its own, anew in each epoch." if stage.text is TextVariant.DECOY else ""
    console.print(says + drawn if records else "Preview: nothing is flagged in the records looked at.")
    for each in records:
        start = each.before.places[0][0]
        shown = sum(end <= start + EXCERPT for _, end in each.before.places) or 1
        rows = [("before", _excerpt(each.before, shown)), ("after", _excerpt(each.after, shown))]
        console.print(make_table(("", ""), rows, title=f"Record {each.record}", show_header=False, **WITHOUT_EDGES))


def _excerpt(text: EditedText, shown: int) -> Text:
    """A text around its first flagged values, which are marked."""
    at = max(0, text.places[0][0] - AROUND)
    excerpt = Text("…" if at else "")
    for start, end in text.places[:shown]:
        excerpt.append(escaped(text.text[at:start])).append(f"«{escaped(text.text[start:end])}»", "bold")
        at = end
    end = min(at + AROUND, *(start for start, _ in text.places[shown:]), len(text.text))
    return excerpt.append(escaped(text.text[at:end]) + ("…" if end < len(text.text) else ""))


def _stages(stages: Sequence[StageEntry]) -> Table:
    head = ("stage", "text", "epochs", "steps", "batch", "C", "σ")
    rows = [
        (
            stage.name,
            stage.text or "none",
            str(stage.epochs),
            str(stage.steps),
            str(stage.batch),
            "–" if stage.clip_norm is None else f"{stage.clip_norm:g}",
            _noise(stage),
        )
        for stage in stages
    ]
    return make_table(head, rows, title="Stages", **WITHOUT_EDGES)


def _noise(stage: StageEntry) -> str:
    """The noise multipliers of a stage: one, the range of several, that of a release, or none."""
    if not stage.noise_multipliers:
        return "none" if stage.release_noise_multiplier is None else f"{stage.release_noise_multiplier:.2f} once"
    low, high = f"{min(stage.noise_multipliers):.2f}", f"{max(stage.noise_multipliers):.2f}"
    return low if low == high else f"{low}–{high}"


def show_result(result: HardenSummary, console: Console) -> None:
    """Print the result of a run."""
    show_measured(result, console)
    if result.ended_early is not None:
        console.print(result.ended_early)
    console.print(f"{result.steps} steps in {_duration(result.seconds)}.")
    console.print(f"Report: {Path(result.output) / HTML_FILE}", soft_wrap=True)
    console.print(f"Keep private: {beside(Path(result.output), PRIVATE)}", soft_wrap=True)
    if result.release is not None:
        console.print(f"{VERDICTS[result.release.verdict]}. {result.release.reason}", style="bold")
        console.print("Audit it with atdp audit-canary, or map what it still knows with atdp audit-corpus.")


def show_measured(of: HardenSummary | PrivateReport, console: Console) -> None:
    """Print what was measured on private text: perplexities, repeated values, and ranks of flagged values."""
    entries = [("its start", of.perplexity.before), ("this model", of.perplexity.after)]
    rows = [(name, *map(figure, (entry.all, entry.sensitive, entry.other))) for name, entry in entries]
    console.print(make_table(("", "all", "sensitive", "other"), rows, title="Private: held-out perplexity"))
    if of.usefulness:
        show_usefulness(of.usefulness, console)
    if of.value_ranks is not None:
        console.print(_ranks(of.value_ranks))


def show_usefulness(usefulness: Sequence[UsefulnessEntry], console: Console) -> None:
    """Print how often models say a value again that stands in a record before, and how well they predict the rest."""
    rows = [
        (
            entry.model,
            f"{entry.whole:,}",
            f"{entry.values:,}",
            "too few to tell" if entry.within is None else "–".join(f"{share:.0%}" for share in entry.within),
            f"{entry.right / entry.tokens:.0%}" if entry.tokens else "–",
            figure(entry.perplexity.all),
        )
        for entry in usefulness
    ]
    head = ("", "said right", "of", "95 %", "tokens right", "perplexity")
    console.print(make_table(head, rows, title="Private: repeated values of held-out records with decoys"))


def _ranks(ranks: RanksBeforeAfter) -> Table:
    """How much the models remember of flagged values: nothing where both columns are alike."""
    rows = [
        (name, *map(figure, (entry.training, entry.held_out, entry.p_value)))
        for name, entry in (("its start", ranks.before), ("this model", ranks.after))
    ]
    return make_table(
        ("", "training records", "held-out records", "p"),
        rows,
        title="Private: share of decoys likelier than the flagged value",
        caption="Held-out records show what chance is; p: that training records are lower by chance.",
        caption_justify="left",
    )


def _duration(seconds: float) -> str:
    """`80 s`, `7 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
