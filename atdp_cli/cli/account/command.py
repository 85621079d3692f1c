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
)
from atdp_cli.cli.account.output import curves_svg, print_account
from atdp_cli.cli.account.subject import Subject, account_subject, is_hypothetical
from atdp_cli.cli.options.shared import OutputOptions
from atdp_cli.cli.terminal.console import write_json
from atdp_cli.errors import UsageError
from atdp_cli.text.options import ReplacingOptions
from atdp_cli.training.options import AcceptOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.account import Figures
    from atdp_cli.privacy.scope import Guarantee


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
    subject, supported, result = run_account(
        ledgers or [],
        asked=asked,
        planning=planning,
        figuring=figuring,
        adopting=adopting,
        limiting=limiting,
        accepting=accepting,
        replacing=replacing,
    )
    if printing.as_json:
        from atdp_cli.cli.account.summary import account_summary

        write_json(account_summary(subject, supported, result, figuring.group).model_dump(mode="json"))
    else:
        print_account(subject, supported, result, figuring.group, solved=asked.solve is not None)


def run_account(
    ledgers: Sequence[Path],
    *,
    asked: LedgerOptions,
    planning: PlanOptions,
    figuring: FigureOptions,
    adopting: AdoptOptions,
    limiting: EpsilonLimitOptions,
    accepting: AcceptOptions,
    replacing: ReplacingOptions,
) -> "tuple[Subject, Sequence[Guarantee], Figures]":
    """Account as the options say, write what was asked for, and show nothing.

    Returns:
        What was accounted for, its guarantees and its figures.
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
        ledgers = [_adopted(adopting, asked, planning, ledgers, figuring, force=replacing.force)]
    elif adopting.ledger:
        raise UsageError("--ledger goes with --adopt.", "Name a ledger to account for without --ledger.")
    subject = account_subject(ledgers, asked, planning, None if recipe is None else recipe.recipe, figuring.delta)
    supported = guarantees(subject.ledger, models=max(1, len(subject.parts)))
    if subject.parameters is not None:
        # Parameters have neither a past nor a corpus, so nothing can be said of records.
        supported = supported[-1:]
    if limiting.max_epsilon is not None:
        check_limit(subject.ledger, supported, limiting.max_epsilon, accept_declared=accepting.accept_declared)
    result = figures(subject.ledger, wanted, supported)
    if figuring.curve is not None:
        figuring.curve.write_text(curves_svg(subject.ledger, result), encoding="utf-8")
    return subject, supported, result


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
    if ledgers or is_hypothetical(options, planning):
        raise UsageError("--adopt goes with --ledger and --prior alone.", "Leave parameters and other ledgers out.")
    adopt_model(adopting.adopt, adopting.ledger, prior=planning.prior, delta=figuring.delta, force=force)
    return adopting.adopt


def _check_curve(path: Path | None, *, force: bool) -> None:
    if path is None:
        return
    if path.suffix != ".svg":
        raise UsageError(f"--curve {path} does not end in .svg.", "Curves are drawn as SVG.")
    if path.exists() and not force:
        raise UsageError(f"{path} exists.", "Choose another --curve, or add --force.")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is no folder.", "Make it first.")
