"""What `atdp account` accounts for, from its options."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.cli.account.options import LedgerOptions, PlanOptions, Unknown
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Parameters
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


def account_subject(
    ledgers: Sequence[Path],
    options: LedgerOptions,
    planning: PlanOptions,
    recipe: "Recipe | None",
    delta: float | None,
) -> Subject:
    """The ledgers, the recipe or the run of equal steps that the options name.

    Raises:
        UsageError: They name none, or several.
        InputError: A ledger cannot be read.
        BudgetError: What is to be solved for has no solution.
    """
    from atdp_cli.jobs.account import read_ledgers, with_delta

    if (options.solve is None) != (options.target_epsilon is None):
        raise UsageError("--solve and --target-epsilon go together.", "Give both or neither.")
    if ledgers:
        if is_hypothetical(options, planning):
            raise UsageError("A ledger and parameters exclude each other.", "Give one of them.")
        whole, each = read_ledgers(ledgers)
        parts = tuple(zip(ledgers, each, strict=True)) if len(each) > 1 else ()
        return Subject(ledger=with_delta(whole, delta), parts=parts)
    if recipe is not None:
        return _of_recipe(recipe, options, planning, delta)
    if any(value is not None for value in _planned(planning)):
        raise UsageError("--records, --epochs, --batch-size and --set go with --recipe.", "Add --recipe.")
    return _of_parameters(options, delta)


def is_hypothetical(options: LedgerOptions, planning: PlanOptions) -> bool:
    """Whether parameters or a recipe are given, of a run that nobody has run yet."""
    run = (options.sample_rate, options.noise_multiplier, options.steps, options.solve)
    return any(value is not None for value in (*run, *_planned(planning)))


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
