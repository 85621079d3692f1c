"""`atdp account`: ε of a ledger, or of parameters that nobody has run yet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.console import results, write_json
from atdp_cli.cli.options import Json, Quiet
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.privacy.ledger import Ledger

ASKED = "Hypothetical"


def account(
    ledger: Annotated[
        Path | None, typer.Argument(metavar="[OUT|LEDGER]", help="A hardened model's folder, or a privacy_ledger.json.")
    ] = None,
    sample_rate: Annotated[
        float | None, typer.Option(help="q: the chance of each record to be in a step.", rich_help_panel=ASKED)
    ] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="σ: noise over clip norm.", rich_help_panel=ASKED)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps.", rich_help_panel=ASKED)] = None,
    delta: Annotated[
        float | None, typer.Option(help="δ. Default: the ledger's own, else 1e-6.", rich_help_panel="Privacy")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,  # noqa: ARG001 - scripts give it to every command; nothing is said on stderr here
) -> None:
    """Say what ε a run has spent, or would spend: by PLD (the figure to quote), by RDP, and the paper's way."""
    from atdp_cli.privacy.guarantee import advice, guarantees, sentences
    from atdp_cli.ranges import require_fraction

    found = _ledger(ledger, sample_rate, noise_multiplier, steps)
    if delta is not None:
        require_fraction("delta", delta)
        if delta >= 1 / found.records and ledger is not None:
            raise UsageError(
                f"delta is {delta:g}, not below 1/N for {found.records:,} training records.", "Choose a smaller one."
            )
        found = found.model_copy(update={"delta": delta})
    told = guarantees(found) if ledger is not None else guarantees(found)[-1:]
    answer = _answer(found, told)
    if as_json:
        write_json(answer)
        return
    console = results()
    if answer["epsilon"] is not None:
        console.print(_table(answer))
    if ledger is not None:
        for line in filter(None, (*sentences(found, told), advice(found))):
            console.print(line)


def _ledger(
    path: Path | None, sample_rate: float | None, noise_multiplier: float | None, steps: int | None
) -> "Ledger":
    from atdp_cli.privacy.accountant import grid_for
    from atdp_cli.privacy.ledger import Ledger, SubsampledGaussian, read_verified
    from atdp_cli.ranges import require_at_least, require_positive

    if path is not None:
        if (sample_rate, noise_multiplier, steps) != (None, None, None):
            raise UsageError("A ledger and parameters exclude each other.", "Give one of them.")
        return read_verified(path)
    if sample_rate is None or noise_multiplier is None or steps is None:
        raise UsageError(
            "There is nothing to account for.",
            "Give a model folder or ledger, or all of --sample-rate, --noise-multiplier and --steps.",
        )
    require_positive("sample-rate", sample_rate)
    if sample_rate > 1:
        raise UsageError(f"sample-rate is {sample_rate}.", "It is a probability: choose at most 1.")
    require_positive("noise-multiplier", noise_multiplier)
    require_at_least("steps", steps, 1)
    event = SubsampledGaussian(
        stage="hypothetical",
        sampling_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        clip_norm=1.0,
        steps=steps,
    )
    return Ledger(unit="record", prior="unknown", records=1, delta=1e-6, grid=grid_for([event]), events=(event,))


def _answer(ledger: "Ledger", told: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from atdp_cli.privacy.accountant import epsilons
    from atdp_cli.privacy.ledger import private_events
    from atdp_cli.report.document import guarantee_entries, json_numbers

    private = private_events(ledger.events)
    return {
        "schema_version": 1,
        "epsilon": json_numbers(asdict(epsilons(private, ledger.delta, grid=ledger.grid))) if private else None,
        "delta": ledger.delta,
        "grid": ledger.grid,
        "insecure_seed": ledger.insecure_seed,
        "guarantees": [entry.model_dump(mode="json") for entry in guarantee_entries(told)],
    }


def _table(answer: dict[str, Any]) -> Any:
    from rich.table import Table

    from atdp_cli.privacy.guarantee import rounded_up

    table = Table("accountant", "ε", title=f"δ = {answer['delta']:g}", title_justify="left")
    table.columns[1].justify = "right"
    names = {"pld": "PLD (quote this)", "rdp": "RDP", "paper": "the paper's conversion"}
    for key, name in names.items():
        table.add_row(name, rounded_up(float(answer["epsilon"][key])))
    return table
