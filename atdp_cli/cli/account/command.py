"""`atdp account`: ε of ledgers, or of parameters or a recipe that nobody has run yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.account.options import FigureOptions, LedgerOptions, PlanOptions
from atdp_cli.cli.account.subject import Subject, account_subject
from atdp_cli.cli.options.shared import OutputOptions
from atdp_cli.cli.terminal.console import stdout_console, write_json
from atdp_cli.errors import UsageError
from atdp_cli.text.options import ReplacingOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Figures, ScopeFigures
    from atdp_cli.privacy.guarantee import Guarantee
    from atdp_cli.privacy.ledger import Ledger


def account_command(
    ledger: LedgerOptions,
    planning: PlanOptions,
    figuring: FigureOptions,
    printing: OutputOptions,
    ledgers: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="OUT|LEDGER",
            help="Hardened models' folders, or privacy_ledger.json files; several compose, what they share once.",
        ),
    ] = None,
    *,
    replacing: ReplacingOptions,
) -> None:
    """Say what ε runs have spent, or would spend: by PLD (the figure to quote), by RDP, and the paper's way.

    Give ledgers, or --sample-rate, --noise-multiplier and --steps, or --recipe and --records.
    """
    from atdp_cli.privacy.statement import advice, guarantee_sentences

    subject, supported, result = run_account(ledgers or [], ledger, planning, figuring, replacing)
    if printing.as_json:
        from atdp_cli.cli.account.summary import account_summary

        write_json(account_summary(subject, supported, result, figuring.group).model_dump(mode="json"))
        return
    console = stdout_console()
    if ledger.solve is not None:
        for line in _solution(subject):
            console.print(line)
    for index, scope in enumerate(_shown(result)):
        console.print(_table(subject, result, scope, figuring.group, first=not index))
    if subject.parameters is None:
        for line in filter(None, (*guarantee_sentences(subject.ledger, supported), advice(subject.ledger))):
            console.print(line)


def run_account(
    ledgers: Sequence[Path],
    ledger: LedgerOptions,
    planning: PlanOptions,
    figuring: FigureOptions,
    replacing: ReplacingOptions,
) -> "tuple[Subject, Sequence[Guarantee], Figures]":
    """Account as the options say, draw the curve that was asked for, and show nothing.

    Returns:
        What was accounted for, its guarantees and its figures.
    """
    from atdp_cli.jobs.account import AccountRequest, figures
    from atdp_cli.privacy.guarantee import guarantees
    from atdp_cli.training.recipe_file import load_recipe

    _check_curve(figuring.curve, force=replacing.force)
    recipe = None if planning.recipe is None else load_recipe(planning.recipe)
    if recipe is not None:
        planning, figuring = planning.fill(recipe.run.given()), figuring.fill(recipe.run.given())
    wanted = AccountRequest(
        group=figuring.group,
        replace_one=figuring.replace_one,
        floor=figuring.floor,
        cross_check=figuring.cross_check,
        curves=figuring.curve is not None,
    )
    subject = account_subject(ledgers, ledger, planning, None if recipe is None else recipe.recipe, figuring.delta)
    supported = guarantees(subject.ledger, models=max(1, len(subject.parts)))
    if subject.parameters is not None:
        # Parameters have neither a past nor a corpus, so nothing can be said of records.
        supported = supported[-1:]
    result = figures(subject.ledger, wanted, supported)
    if figuring.curve is not None:
        figuring.curve.write_text(_drawn(subject.ledger, result), encoding="utf-8")
    return subject, supported, result


def _check_curve(path: Path | None, *, force: bool) -> None:
    if path is None:
        return
    if path.suffix != ".svg":
        raise UsageError(f"--curve {path} does not end in .svg.", "Curves are drawn as SVG.")
    if path.exists() and not force:
        raise UsageError(f"{path} exists.", "Choose another --curve, or add --force.")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is no folder.", "Make it first.")


def _drawn(ledger: "Ledger", result: "Figures") -> str:
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
    "uncounted": "Uncounted: flagged letters and digits that the release does not count",
    "increment": "Increment: what stages and releases with noise add; no guarantee for any {unit}",
}


def _shown(result: "Figures") -> "list[ScopeFigures]":
    """The scopes with figures of their own: end to end, the increment is the same."""
    whole = any(scope.scope == "end_to_end" for scope in result.scopes)
    return [scope for scope in result.scopes if not (whole and scope.scope == "increment")]


def _table(subject: Subject, result: "Figures", figures: "ScopeFigures", group: int | None, *, first: bool) -> Any:
    from rich.table import Table

    from atdp_cli.privacy.claims import rounded_up

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
