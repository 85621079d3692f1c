"""The options of `atdp account`, by subject."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.harden.options import PriorOption

ASKED, PLANNED, FIGURES = "Hypothetical run", "Hypothetical recipe", "Figures"


class Unknown(StrEnum):
    """What `--solve` looks for."""

    NOISE = "noise"
    STEPS = "steps"
    SAMPLE_RATE = "sample-rate"


@dataclass(frozen=True, kw_only=True)
class LedgerOptions:
    """A run of equal steps, or what is known of it."""

    sample_rate: Annotated[
        float | None, typer.Option(help="q: the chance of each record to be in a step.", rich_help_panel=ASKED)
    ] = None
    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="σ: noise over clip norm; with --recipe σ₀ of the last DP stage.", rich_help_panel=ASKED),
    ] = None
    steps: Annotated[int | None, typer.Option(help="Number of steps.", rich_help_panel=ASKED)] = None
    solve: Annotated[
        Unknown | None,
        typer.Option(
            metavar="noise|steps|sample-rate",
            help="Find the least noise, the most steps or the largest sample rate for --target-epsilon, the others "
            "given; with --recipe the noise.",
            rich_help_panel=ASKED,
        ),
    ] = None
    target_epsilon: Annotated[
        float | None, typer.Option(help="The ε that --solve must not pass.", rich_help_panel=ASKED)
    ] = None


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """A recipe over a corpus of some size."""

    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES|FILE.toml",
            help="Stages as harden takes them, joined by +, or a recipe file; goes with --records.",
            rich_help_panel=PLANNED,
        ),
    ] = None
    records: Annotated[int | None, typer.Option(help="N, the training records.", rich_help_panel=PLANNED)] = None
    epochs: Annotated[int | None, typer.Option(help="Passes over the corpus. Default: 3.", rich_help_panel=PLANNED)] = (
        None
    )
    batch_size: Annotated[
        int | None,
        typer.Option(help="B, expected records a step. Default: min(256, ⌈N/4⌉).", rich_help_panel=PLANNED),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.KEY=VALUE",
            help="An option of one stage, as escalation, jitter or sigma-max. Repeatable.",
            rich_help_panel=PLANNED,
        ),
    ] = None
    jitter_seed: Annotated[int, typer.Option(help="Seed of the jitter of σ.", rich_help_panel=PLANNED)] = 0
    prior: Annotated[
        PriorOption,
        typer.Option(help="public: the first checkpoint never saw the corpus.", rich_help_panel=PLANNED),
    ] = PriorOption.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """Which figures."""

    delta: Annotated[
        float | None, typer.Option(help="δ. Default: the ledger's own, else 1e-6.", rich_help_panel=FIGURES)
    ] = None
    group: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Also ε for K records together, such as those of one person.",
            rich_help_panel=FIGURES,
        ),
    ] = None
    replace_one: Annotated[
        bool,
        typer.Option(
            "--replace-one",
            help="Also ε for one record replaced by another, not by an empty one.",
            rich_help_panel=FIGURES,
        ),
    ] = False
    floor: Annotated[
        bool,
        typer.Option("--floor", help="Also the paper's bound: every σ as its smallest.", rich_help_panel=FIGURES),
    ] = False
    cross_check: Annotated[
        bool,
        typer.Option("--cross-check", help="Also ε by Opacus' RDP and PRV; loads torch.", rich_help_panel=FIGURES),
    ] = False
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg",
            help="Draw ε over δ and over the steps; --json then has both as data.",
            rich_help_panel=FIGURES,
        ),
    ] = None
