"""ε of ledgers on the terminal, as JSON, and as curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atdp_cli.cli.terminal.console import stdout_console

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Figures, Parameters, ScopeFigures
    from atdp_cli.privacy.guarantee import Guarantee
    from atdp_cli.privacy.ledger import Ledger
    from atdp_cli.training.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is accounted for.

    Attributes:
        ledger: All of it, as one ledger.
        parts: The path and the ledger of each of several.
        parameters: A run of equal steps, where that was asked about.
        plan: A recipe's, where that was asked about.
    """

    ledger: "Ledger"
    parts: tuple[tuple[Path, "Ledger"], ...] = ()
    parameters: "Parameters | None" = None
    plan: "Plan | None" = None


def print_account(
    subject: Subject, supported: Sequence["Guarantee"], result: "Figures", group: int | None, *, solved: bool
) -> None:
    """The figures of each scope as a table, and what the ledger guarantees in words.

    Args:
        group: How many records also together; None for one alone.
        solved: Whether a figure was looked for, which then comes first.
    """
    from atdp_cli.privacy.statement import advice, guarantee_sentences

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


def account_json(
    subject: Subject, supported: Sequence["Guarantee"], result: "Figures", group: int | None
) -> dict[str, Any]:
    """The figures as `--json` has them."""
    from dataclasses import asdict

    from atdp_cli.report.document import guarantee_entries
    from atdp_cli.report.numbers import json_number

    ledger = subject.ledger
    scopes = [_block(scope, group) for scope in result.scopes]
    # The strongest scope comes first, so its figures are those to quote.
    quoted = scopes[0] if scopes else {"scope": None, "adjacency": None, "epsilon": None, "group": None}
    answer: dict[str, Any] = {
        "schema_version": 1,
        **{name: quoted[name] for name in ("scope", "adjacency", "epsilon")},
        "scopes": scopes,
        "delta": ledger.delta,
        "grid": ledger.grid,
        "insecure_seed": ledger.insecure_seed,
        "guarantees": [entry.model_dump(mode="json") for entry in guarantee_entries(supported)],
    }
    if group is not None:
        answer["group"] = quoted["group"] or {"records": group, "epsilon": None}
    for name, value in (("replace_one", result.replace_one), ("floor", result.floor)):
        if value is not None:
            answer[name] = json_number(value)
    if result.cross_check is not None:
        answer["cross_check"] = {f"opacus_{name}": value for name, value in asdict(result.cross_check).items()}
    if result.over_delta:
        answer["curves"] = {
            "epsilon_over_delta": [[delta, json_number(epsilon)] for delta, epsilon in result.over_delta],
            "epsilon_over_steps": [[steps, json_number(epsilon)] for steps, epsilon in result.over_steps],
        }
    if subject.parts:
        answer["ledgers"] = [{"path": str(path), "epsilon": json_number(_pld(part))} for path, part in subject.parts]
    if subject.parameters is not None:
        answer["parameters"] = asdict(subject.parameters)
    if subject.plan is not None:
        answer["stages"] = _stages(subject.plan)
    return answer


def _block(figures: "ScopeFigures", group: int | None) -> dict[str, Any]:
    """The figures of a scope."""
    from dataclasses import asdict

    from atdp_cli.report.numbers import json_number, json_numbers

    return {
        "scope": figures.scope,
        "adjacency": figures.adjacency,
        "delta": figures.delta,
        "epsilon": json_numbers(asdict(figures.epsilons)),
        "group": None if group is None else {"records": group, "epsilon": json_number(figures.group)},
    }


def _stages(plan: "Plan") -> list[dict[str, Any]]:
    return [
        {
            "name": stage.stage.name,
            "epochs": stage.stage.epochs,
            "steps": stage.steps,
            "batch": stage.batch,
            "sampling_rate": stage.sampling_rate,
            "noise_multipliers": list(stage.noise_multipliers),
            "release_noise_multiplier": stage.stage.release_noise_multiplier,
        }
        for stage in plan.training
    ]


def _pld(ledger: "Ledger") -> float | None:
    """What a ledger's stages with noise spend; None where there are none, which is no promise at all."""
    from atdp_cli.privacy.accountant import epsilon_pld
    from atdp_cli.privacy.ledger import private_events

    events = private_events(ledger.events)
    return epsilon_pld(events, ledger.delta, grid=ledger.grid) if events else None


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
    rows: list[tuple[str, float | None]] = []
    if result.replace_one is not None:
        rows.append(("replace-one, PLD", result.replace_one))
    if result.floor is not None:
        rows.append(("every σ as its smallest, PLD", result.floor))
    if result.cross_check is not None:
        rows += [("Opacus, RDP", result.cross_check.rdp), ("Opacus, PRV", result.cross_check.prv)]
    return rows + [(f"{path} alone, PLD at δ = {part.delta:g}", _pld(part)) for path, part in subject.parts]
