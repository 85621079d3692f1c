"""`atdp account`: ε of ledgers, or of parameters or a recipe that nobody has run yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.account.options import (
    AdoptOptions,
    EpsilonLimitOptions,
    FigureOptions,
    LedgerOptions,
    PlanOptions,
    Unknown,
)
from atdp_cli.cli.account.output import Subject, account_json, curves_svg, print_account
from atdp_cli.cli.options.shared import OutputOptions
from atdp_cli.cli.terminal.console import write_json
from atdp_cli.errors import UsageError
from atdp_cli.text.options import ReplacingOptions
from atdp_cli.training.options import AcceptOptions

if TYPE_CHECKING:
    from atdp_cli.training.recipe import Recipe


def account_command(
    asked: LedgerOptions,
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
    adopting: AdoptOptions,
    limiting: EpsilonLimitOptions,
    accepting: AcceptOptions,
    replacing: ReplacingOptions,
) -> None:
    """Say what ε runs have spent, or would spend: by PLD (the figure to quote), by RDP, and the paper's way.

    Give ledgers, or --sample-rate, --noise-multiplier and --steps, or --recipe and --records. Or declare how a model
    was trained elsewhere: --adopt MODEL --ledger DECOYED.
    """
    from atdp_cli.jobs.account import AccountRequest, check_limit, figures
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
    if adopting.adopt is not None:
        if limiting.max_epsilon is not None:
            raise UsageError("--adopt writes what is declared, before any --max-epsilon.", "Adopt it, then account it.")
        ledgers = [_adopted(adopting, asked, planning, ledgers or [], figuring, force=replacing.force)]
    elif adopting.ledger:
        raise UsageError("--ledger goes with --adopt.", "Name a ledger to account for without --ledger.")
    subject = _subject(ledgers or [], asked, planning, None if recipe is None else recipe.recipe, figuring.delta)
    supported = guarantees(subject.ledger, models=max(1, len(subject.parts)))
    if subject.parameters is not None:
        # Parameters have neither a past nor a corpus, so nothing can be said of records.
        supported = supported[-1:]
    if limiting.max_epsilon is not None:
        check_limit(subject.ledger, supported, limiting.max_epsilon, accept_declared=accepting.accept_declared)
    result = figures(subject.ledger, wanted, supported)
    if figuring.curve is not None:
        figuring.curve.write_text(curves_svg(subject.ledger, result), encoding="utf-8")
    if printing.as_json:
        write_json(account_json(subject, supported, result, wanted.group))
    else:
        print_account(subject, supported, result, wanted.group, solved=asked.solve is not None)


def _adopted(
    adopting: AdoptOptions,
    options: LedgerOptions,
    planning: PlanOptions,
    ledgers: Sequence[Path],
    figuring: FigureOptions,
    *,
    force: bool,
) -> Path:
    """The model whose ledger was written as its user declares, to account for."""
    from atdp_cli.jobs.decoy.adopt import adopt_model

    if adopting.adopt is None or not adopting.ledger:
        raise UsageError("--adopt describes a model by ledgers.", "Add --ledger DECOYED, which atdp decoy wrote.")
    run = (options.sample_rate, options.noise_multiplier, options.steps, options.solve)
    if ledgers or any(value is not None for value in (*run, *_planned(planning))):
        raise UsageError("--adopt goes with --ledger and --prior alone.", "Leave parameters and other ledgers out.")
    adopt_model(adopting.adopt, adopting.ledger, prior=planning.prior, delta=figuring.delta, force=force)
    return adopting.adopt


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
