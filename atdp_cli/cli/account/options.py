"""The options of `atdp account`, by subject."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from atdp_cli.options import Option, Options
from atdp_cli.privacy.ledger import Prior

ASKED, PLANNED, FIGURES = "Hypothetical run", "Hypothetical recipe", "Figures"


class Unknown(StrEnum):
    """What `--solve` looks for."""

    NOISE = "noise"
    STEPS = "steps"
    SAMPLE_RATE = "sample-rate"


class LedgerOptions(Options):
    """A run of equal steps, or what is known of it."""

    sample_rate: Annotated[
        float | None,
        Field(description="q: the chance of each record to be in a step."),
        Option(panel=ASKED),
    ] = None
    noise_multiplier: Annotated[
        float | None,
        Field(description="σ: noise over clip norm; with --recipe σ₀ of the last DP stage."),
        Option(panel=ASKED),
    ] = None
    steps: Annotated[int | None, Field(description="Number of steps."), Option(panel=ASKED)] = None
    solve: Annotated[
        Unknown | None,
        Field(
            description="Find the least noise, the most steps or the largest sample rate for --target-epsilon, the "
            "others given; with --recipe the noise."
        ),
        Option(panel=ASKED, metavar="noise|steps|sample-rate"),
    ] = None
    target_epsilon: Annotated[
        float | None,
        Field(description="The ε that --solve must not pass."),
        Option(panel=ASKED),
    ] = None


class PlanOptions(Options):
    """A recipe over a corpus of some size."""

    recipe: Annotated[
        str | None,
        Field(description="Stages as harden takes them, joined by +, or a recipe file; goes with --records."),
        Option(panel=PLANNED, metavar="NAMES|FILE.toml"),
    ] = None
    records: Annotated[int | None, Field(description="N, the training records."), Option(panel=PLANNED)] = None
    epochs: Annotated[
        int | None,
        Field(description="Passes over the corpus. Default: 3."),
        Option(panel=PLANNED),
    ] = None
    batch_size: Annotated[
        int | None,
        Field(description="B, expected records a step. Default: min(256, ⌈N/4⌉)."),
        Option(panel=PLANNED),
    ] = None
    set_: Annotated[
        tuple[str, ...],
        Field(description="An option of one stage, as escalation, jitter or sigma-max. Repeatable."),
        Option(panel=PLANNED, flags=("--set",), metavar="STAGE.KEY=VALUE"),
    ] = ()
    jitter_seed: Annotated[int, Field(description="Seed of the jitter of σ."), Option(panel=PLANNED)] = 0
    prior: Annotated[
        Prior,
        Field(description="public: the first checkpoint never saw the corpus."),
        Option(panel=PLANNED),
    ] = "unknown"


class FigureOptions(Options):
    """Which figures."""

    delta: Annotated[
        float | None,
        Field(description="δ. Default: the ledger's own, else 1e-6."),
        Option(panel=FIGURES),
    ] = None
    group: Annotated[
        int | None,
        Field(description="Also ε for K records together, such as those of one person."),
        Option(panel=FIGURES, metavar="K"),
    ] = None
    replace_one: Annotated[
        bool,
        Field(description="Also ε for one record replaced by another, not by an empty one."),
        Option(panel=FIGURES),
    ] = False
    floor: Annotated[
        bool,
        Field(description="Also the paper's bound: every σ as its smallest."),
        Option(panel=FIGURES),
    ] = False
    cross_check: Annotated[
        bool,
        Field(description="Also ε by Opacus' RDP and PRV; loads torch."),
        Option(panel=FIGURES),
    ] = False
    curve: Annotated[
        Path | None,
        Field(description="Draw ε over δ and over the steps; --json then has both as data."),
        Option(panel=FIGURES, metavar="FILE.svg"),
    ] = None
