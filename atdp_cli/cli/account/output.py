"""ε of ledgers on the terminal, and as curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from atdp_cli.cli.account.subject import Subject
from atdp_cli.cli.terminal.console import stdout_console

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Figures, ScopeFigures
    from atdp_cli.privacy.ledger import Ledger
    from atdp_cli.privacy.scope import Guarantee


def print_account(
    subject: Subject, supported: Sequence["Guarantee"], result: "Figures", group: int | None, *, solved: bool
) -> None:
    """The figures of each scope as a table, and what the ledger guarantees in words.

    Args:
        group: How many records also together; None for one alone.
        solved: Whether a figure was looked for, which then comes first.
    """
    from atdp_cli.privacy.wording import advice, guarantee_sentences

    console = stdout_console()
    if solved:
        for line in _solution(subject):
            console.print(line)
    for index, scope in enumerate(_shown(result)):
        console.print(_table(subject, result, scope, group, first=not index))
    if subject.parameters is None:
        for line in filter(None, (*guarantee_sentences(subject.ledger, supported), advice(subject.ledger))):
            console.print(line)


def curves_svg(ledger: "Ledger", result: "Figures") -> str:
    """ε over δ and over the steps, as SVG."""
    from atdp_cli.report.charts import Curve, Panel, chart

    panels = (
        Panel(
            title="ε over δ",
            x_label="δ",
            y_label="ε (PLD)",
            curves=(Curve(points=result.over_delta),),
            logarithmic=True,
        ),
        Panel(
            title=f"ε over steps, δ = {ledger.delta:g}",
            x_label="steps",
            y_label="ε (PLD)",
            curves=(Curve(points=result.over_steps),),
        ),
    )
    return chart(
        "What the stages with noise spend",
        "Left: ε falls as δ grows. Right: ε grows with the steps taken. Zero-out adjacency, one "
        f"{ledger.unit}; a stage without noise is in neither.",
        panels,
    )


def _solution(subject: Subject) -> list[str]:
    if subject.plan is not None:
        shown = [
            f"Stage {stage.stage.name}: {stage.steps:,} steps, noise multiplier {sigmas[0]!r} in the first epoch."
            for stage in subject.plan.training
            if (sigmas := stage.noise_multipliers)
        ]
        shown += [
            f"Stage {stage.stage.name}: noise multiplier {sigma!r} for its one release."
            for stage in subject.plan.training
            if (sigma := stage.stage.release_noise_multiplier) is not None
        ]
        return shown
    if subject.parameters is None:
        raise ValueError("nothing was solved for")
    q, sigma, steps = subject.parameters.sample_rate, subject.parameters.noise_multiplier, subject.parameters.steps
    return [f"Sample rate {q:.6g}, noise multiplier {sigma:.6g}, {steps:,} steps."]


SCOPE_TITLES = {
    "end_to_end": "End to end, for each {unit}",
    "selective": "Selective: the flagged characters alone, for each {unit}",
    "declared": "Declared by the user: the flagged characters alone, for each {unit}",
    "uncounted": "Uncounted: flagged letters and digits that the release does not count",
    "increment": "Increment: what stages and releases with noise add; no guarantee for any {unit}",
}


def _shown(result: "Figures") -> "list[ScopeFigures]":
    """The scopes with figures of their own: end to end, the increment is the same."""
    whole = any(scope.scope == "end_to_end" for scope in result.scopes)
    return [scope for scope in result.scopes if not (whole and scope.scope == "increment")]


def _table(subject: Subject, result: "Figures", figures: "ScopeFigures", group: int | None, *, first: bool) -> Any:
    from rich.table import Table

    from atdp_cli.privacy.wording import rounded_up

    # An increment is no guarantee, so it is nothing to quote, unless it is all that was asked about.
    first = first and (figures.scope != "increment" or subject.parameters is not None)
    quoted = "PLD (quote this)" if first else "PLD"
    rows: list[tuple[str, float | None]] = [
        (quoted, figures.epsilons.pld),
        ("RDP", figures.epsilons.rdp),
        ("the paper's conversion", figures.epsilons.paper),
        ("without amplification: an observer knows every step's sample", figures.epsilons.without_amplification),
    ]
    if figures.delta == 0:
        rows = [("exact (quote this)" if first else "exact", 0.0)]
    if group is not None:
        rows.append((f"{group} records together, PLD", figures.group))
    if figures.adjacency == "zero-out":
        rows += _further(subject, result)
    title = "A run of equal steps"
    if subject.parameters is None:
        title = SCOPE_TITLES[figures.scope].format(unit=subject.ledger.unit)
    table = Table("accountant", "ε", title=f"{title}. {figures.adjacency}, δ = {figures.delta:g}", title_justify="left")
    table.columns[1].justify = "right"
    for name, value in rows:
        table.add_row(name, "–" if value is None else rounded_up(value))
    return table


def _further(subject: Subject, result: "Figures") -> list[tuple[str, float | None]]:
    """Figures of the stages with noise, and of each ledger."""
    from atdp_cli.cli.account.summary import epsilon_alone

    rows: list[tuple[str, float | None]] = []
    if result.replace_one is not None:
        rows.append(("replace-one, PLD", result.replace_one))
    if result.floor is not None:
        rows.append(("every σ as its smallest, PLD", result.floor))
    if result.cross_check is not None:
        rows += [("Opacus, RDP", result.cross_check.rdp), ("Opacus, PRV", result.cross_check.prv)]
    return rows + [(f"{path} alone, PLD at δ = {part.delta:g}", epsilon_alone(part)) for path, part in subject.parts]
