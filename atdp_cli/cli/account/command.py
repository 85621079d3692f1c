"""`atdp account`: ε of ledgers, or of parameters or a recipe that nobody has run yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.account.options import FigureOptions, LedgerOptions, PlanOptions, Unknown
from atdp_cli.cli.options.shared import OutputOptions
from atdp_cli.cli.terminal.console import stdout_console, write_json
from atdp_cli.errors import UsageError
from atdp_cli.text.options import ReplacingOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Figures, Parameters, ScopeFigures
    from atdp_cli.privacy.guarantee import Guarantee
    from atdp_cli.privacy.ledger import Ledger
    from atdp_cli.training.plan import Plan
    from atdp_cli.training.recipe import Recipe


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
    from atdp_cli.jobs.account import AccountRequest, figures
    from atdp_cli.privacy.guarantee import guarantees
    from atdp_cli.privacy.statement import advice, guarantee_sentences
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
    subject = _subject(ledgers or [], ledger, planning, None if recipe is None else recipe.recipe, figuring.delta)
    supported = guarantees(subject.ledger, models=max(1, len(subject.parts)))
    if subject.parameters is not None:
        # Parameters have neither a past nor a corpus, so nothing can be said of records.
        supported = supported[-1:]
    result = figures(subject.ledger, wanted, supported)
    if figuring.curve is not None:
        figuring.curve.write_text(_drawn(subject.ledger, result), encoding="utf-8")
    if printing.as_json:
        write_json(_answer(subject, supported, result, wanted.group))
        return
    console = stdout_console()
    if ledger.solve is not None:
        for line in _solution(subject):
            console.print(line)
    for index, scope in enumerate(_shown(result)):
        console.print(_table(subject, result, scope, wanted.group, first=not index))
    if subject.parameters is None:
        for line in filter(None, (*guarantee_sentences(subject.ledger, supported), advice(subject.ledger))):
            console.print(line)


def _subject(
    ledgers: Sequence[Path],
    options: LedgerOptions,
    planning: PlanOptions,
    recipe: "Recipe | None",
    delta: float | None,
) -> Subject:
    from atdp_cli.jobs.account import read_ledgers, with_delta

    run = (options.sample_rate, options.noise_multiplier, options.steps)
    if (options.solve is None) != (options.target_epsilon is None):
        raise UsageError("--solve and --target-epsilon go together.", "Give both or neither.")
    if ledgers:
        if any(value is not None for value in (*run, options.solve, *_planned(planning))):
            raise UsageError("A ledger and parameters exclude each other.", "Give one of them.")
        whole, each = read_ledgers(ledgers)
        parts = tuple(zip(ledgers, each, strict=True)) if len(each) > 1 else ()
        return Subject(ledger=with_delta(whole, delta), parts=parts)
    if recipe is not None:
        return _of_recipe(recipe, options, planning, delta)
    if any(value is not None for value in _planned(planning)):
        raise UsageError("--records, --epochs, --batch-size and --set go with --recipe.", "Add --recipe.")
    return _of_parameters(options, delta)


def _planned(planning: PlanOptions) -> tuple[object, ...]:
    return (planning.recipe, planning.records, planning.epochs, planning.batch_size, planning.set_ or None)


def _of_recipe(stages: "Recipe", options: LedgerOptions, planning: PlanOptions, delta: float | None) -> Subject:
    from atdp_cli.jobs.account import DEFAULT_DELTA, Hypothesis, plan_hypothesis
    from atdp_cli.training.settings import apply_settings, parse_setting, stage_setting

    if planning.records is None:
        raise UsageError("A recipe spends by the number of records.", "Add --records.")
    if options.sample_rate is not None or options.steps is not None:
        raise UsageError("A recipe sets its own sample rate and steps.", "Use --records, --batch-size and --epochs.")
    if options.solve not in (None, Unknown.NOISE):
        raise UsageError("For a recipe only the noise can be solved for.", "Use --solve noise.")
    if options.solve is not None and options.noise_multiplier is not None:
        raise UsageError("--solve noise chooses what --noise-multiplier sets.", "Leave one of them out.")
    given = {
        "epochs": planning.epochs,
        "batch-size": planning.batch_size,
        "noise-multiplier": options.noise_multiplier,
    }
    settings = [stage_setting(stages, option, value) for option, value in given.items() if value is not None]
    settings += [parse_setting(stages, text) for text in planning.set_]
    hypothesis = Hypothesis(
        recipe=apply_settings(stages, settings),
        records=planning.records,
        prior=planning.prior,
        jitter_seed=planning.jitter_seed,
    )
    plan = plan_hypothesis(hypothesis, DEFAULT_DELTA if delta is None else delta, options.target_epsilon)
    return Subject(ledger=plan.ledger, plan=plan)


def _of_parameters(options: LedgerOptions, delta: float | None) -> Subject:
    from atdp_cli.jobs.account import DEFAULT_DELTA, Parameters, solve_hypothesis, with_delta

    given = {
        "--sample-rate": options.sample_rate,
        "--noise-multiplier": options.noise_multiplier,
        "--steps": options.steps,
    }
    sought = {Unknown.NOISE: "--noise-multiplier", Unknown.STEPS: "--steps", Unknown.SAMPLE_RATE: "--sample-rate"}
    unknown = None if options.solve is None else sought[options.solve]
    if unknown is not None and given[unknown] is not None:
        raise UsageError(f"--solve {options.solve} chooses what {unknown} sets.", "Leave one of them out.")
    missing = [name for name, value in given.items() if value is None and name != unknown]
    if missing:
        raise UsageError(
            "There is nothing to account for.",
            "Give a model folder or ledger, --recipe and --records, or all of --sample-rate, --noise-multiplier and "
            "--steps, but for the one that --solve finds.",
        )
    parameters = Parameters(
        sample_rate=1.0 if options.sample_rate is None else options.sample_rate,
        noise_multiplier=1.0 if options.noise_multiplier is None else options.noise_multiplier,
        steps=1 if options.steps is None else options.steps,
    )
    at = with_delta(parameters.ledger(DEFAULT_DELTA), delta).delta
    if options.solve is not None and options.target_epsilon is not None:
        parameters = solve_hypothesis(options.solve.value, parameters, options.target_epsilon, at)
    return Subject(ledger=parameters.ledger(at), parameters=parameters)


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


def _answer(subject: Subject, supported: Sequence["Guarantee"], result: "Figures", group: int | None) -> dict[str, Any]:
    from dataclasses import asdict

    from atdp_cli.report.guarantee_entry import guarantee_entries
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
