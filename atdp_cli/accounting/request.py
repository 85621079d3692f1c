"""The options and the request of `account`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import PositiveFloat

from atdp_cli.detection.options import ReplacingOptions
from atdp_cli.privacy.ledger import CheckpointHistory
from atdp_cli.settings import Option, Options
from atdp_cli.training.options import AcceptOptions, StageSizeOptions
from atdp_cli.training.recipe import RECIPES

ASKED, PLANNED, FIGURES = "Hypothetical run", "Hypothetical recipe", "Figures"

ADOPTED, LIMITED = "A model trained elsewhere", "Limit"


class Unknown(StrEnum):
    """The quantities that `--solve` can find."""

    NOISE = "noise"
    STEPS = "steps"
    SAMPLING_PROBABILITY = "sampling-probability"


class AccountedOptions(Options):
    """The runs to account for: ledgers, or a run of equal steps."""

    ledgers: Annotated[tuple[Path, ...], Option(main=True, argument=True, metavar="OUT|LEDGER")] = ()
    """Hardened models' folders, or privacy_ledger.json files; several compose, what they share once."""

    sampling_probability: Annotated[float | None, Option(ASKED, main=True)] = None
    """q: the chance of each record to be in a step."""

    noise_multiplier: Annotated[float | None, Option(ASKED, main=True)] = None
    """σ: noise over clip norm; with --recipe σ₀ of the last DP stage."""

    steps: Annotated[int | None, Option(ASKED, main=True)] = None
    """Number of steps."""

    solve: Annotated[Unknown | None, Option(ASKED, main=True, metavar="noise|steps|sampling-probability")] = None
    """Find the least noise, the most steps or the largest sampling probability for --target-epsilon, the others given;
    with --recipe the noise."""

    target_epsilon: Annotated[float | None, Option(ASKED, main=True)] = None
    """The ε that --solve must not pass."""

    recipe: Annotated[
        str | None, Option(PLANNED, main=True, metavar="NAMES|FILE.toml", words=lambda: RECIPES, joined="+")
    ] = None
    """Stages as harden takes them, joined by +, or a recipe file; goes with --records."""

    records: Annotated[int | None, Option(PLANNED, main=True)] = None
    """N, the training records."""


class AccountRequest(AccountedOptions, StageSizeOptions, AcceptOptions, ReplacingOptions):
    """A question to `atdp account`, one field an option.

        account(AccountRequest(ledgers=["hardened"]))

    Raises:
        UsageError: A value is out of range, or an option has no such name.
    """

    set_: Annotated[tuple[str, ...], Option(PLANNED, flags=("--set",), metavar="STAGE.KEY=VALUE")] = ()
    """An option of one stage, as sigma-growth, jitter or sigma-max; or run.accept-declared=true. Repeatable."""

    checkpoint_history: Annotated[CheckpointHistory, Option(PLANNED, main=True)] = "unknown"
    """public: the first checkpoint never saw the corpus. With --adopt: you declare it."""

    delta: Annotated[float | None, Option(FIGURES, main=True)] = None
    """δ. Default: the ledger's own, else 1e-6."""

    max_epsilon: Annotated[PositiveFloat | None, Option(LIMITED)] = None
    """Exit with 2 unless the strongest guarantee has at most this ε: of the records, or of the flagged characters
    alone. Where only parameters are given, of their steps."""

    adopt: Annotated[Path | None, Option(ADOPTED, metavar="MODEL")] = None
    """Folder of a model that was trained elsewhere on the copies of atdp decoy. Its files are hashed, and
    MODEL/privacy_ledger.json then says what you declare: that it read nothing else of the corpus, and with
    --checkpoint-history public that it started from a checkpoint that never saw it. atdp did not see the training, so
    it claims no more."""

    ledger: Annotated[tuple[Path, ...], Option(ADOPTED, metavar="OUT|LEDGER")] = ()
    """With --adopt: the ledger of the copies, and where the training started from a model with a ledger, that as well.
    Repeatable."""

    @property
    def is_hypothetical(self) -> bool:
        """Whether parameters or a recipe are given, of a run that nobody has run yet."""
        run = (self.sampling_probability, self.noise_multiplier, self.steps, self.solve)
        return any(value is not None for value in (*run, *self.planned))

    @property
    def planned(self) -> tuple[object, ...]:
        """The settings of a recipe's run that were given."""
        return (self.recipe, self.records, self.epochs, self.batch_size, self.set_ or None)
