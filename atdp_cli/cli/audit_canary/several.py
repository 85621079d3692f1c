"""An audit of several models on the terminal: a line as each ends, and a table of all."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from atdp_cli.audit_result import AnyAudit, UnfinishedAudit, Verdict
from atdp_cli.cli.terminal.console import figure

if TYPE_CHECKING:
    from rich.console import Console

_ENDED = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "not completed",
}


def model_line(audit: AnyAudit) -> str:
    """The verdict on one of several models, and the first reason for it; of one that passed its exposures."""
    if audit.verdict is not Verdict.PASS or isinstance(audit, UnfinishedAudit):
        known = "" if audit.gate is audit.verdict else " (no worse than the baseline)"
        return f"{audit.verdict} {audit.model}{known}: {audit.reasons[0]}"
    found = audit.combined
    return (
        f"{audit.verdict} {audit.model}: highest exposure {figure(found.max_exposure)} bits, "
        f"mean {figure(found.mean_exposure)}."
    )


def show_summary(audits: Sequence[AnyAudit], console: "Console") -> None:
    """All models in a table, and how many ended in which way."""
    from rich.table import Table

    table = Table("model", "verdict", "canaries", "highest", "mean", "p", title="Exposure, bits", title_justify="left")
    table.columns[0].overflow = "fold"
    for column in table.columns[2:]:
        column.justify = "right"
    for audit in audits:
        planted = sum(canary.planted for canary in audit.canaries)
        found = audit.combined
        cells = ("–",) * 3
        if found is not None:
            p = "–" if found.fisher_p is None else f"{found.fisher_p:.2g}"
            cells = (figure(found.max_exposure), figure(found.mean_exposure), p)
        table.add_row(audit.model, audit.verdict, str(planted or "–"), *cells)
    console.print(table)
    ended = Counter(audit.gate for audit in audits)
    counts = ", ".join(f"{ended[verdict]} {words}" for verdict, words in _ENDED.items() if ended[verdict])
    console.print(f"{len(audits)} models: {counts}. All about one: audit it alone; about each: --json.")
