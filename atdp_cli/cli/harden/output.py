"""What `atdp harden` shows of its result, to people and as JSON."""

from typing import TYPE_CHECKING

import typer

from atdp_cli.cli.harden.words import duration
from atdp_cli.cli.terminal.console import figure, write_json
from atdp_cli.cli.terminal.escape import escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from atdp_cli.audit.memory.value_ranks import ComparedRanks
    from atdp_cli.jobs.harden.request import Planned
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.model.perplexity import Perplexity
    from atdp_cli.report.measured import BeforeAfter
    from atdp_cli.report.summary.harden import HardenSummary


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
    console.print(f"{finished.steps} steps in {duration(finished.seconds)}.")
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


def write_result(
    planned: "Planned",
    finished: "HardenResult",
    console: "Console",
    *,
    as_json: bool,
) -> None:
    """Show a finished run; standard output gets its folder, or all of it as JSON."""
    show_result(finished, console)
    if as_json:
        write_json(result_summary(planned, finished).model_dump(mode="json"))
    else:
        typer.echo(escaped(str(finished.output)))


def result_summary(planned: "Planned", finished: "HardenResult") -> "HardenSummary":
    """A finished run as `--json` writes it."""
    from dataclasses import asdict

    from atdp_cli.report.guarantee_entry import guarantee_entries
    from atdp_cli.report.measured import RanksBeforeAfter, RanksEntry
    from atdp_cli.report.summary.harden import HardenSummary

    before, after = finished.ranks_before, finished.ranks_after
    return HardenSummary(
        output=str(finished.output),
        recipe=planned.request.recipe_name,
        steps=finished.steps,
        stages=finished.stages,
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
    )


def _before_after(before: "Perplexity", after: "Perplexity") -> "BeforeAfter":
    from dataclasses import asdict

    from atdp_cli.report.measured import BeforeAfter, PerplexityEntry
    from atdp_cli.report.numbers import json_numbers

    first, second = (PerplexityEntry(**json_numbers(asdict(each))) for each in (before, after))
    return BeforeAfter(before=first, after=second)
