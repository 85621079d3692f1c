"""The options of `atdp audit-canary`, by subject."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from atdp_cli.cli.options.shared import Force, IdField, TextField, UnitOption
from atdp_cli.errors import UsageError

LIMITS, BOUNDS, OUTPUT = "Limits", "Lower bounds on ε", "Output"
ATTACKS, OWN = "Beyond ranks", "The corpus's own numbers"


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What fails a model."""

    alpha: Annotated[
        float, typer.Option(help="Chance of failing a model that remembers nothing.", rich_help_panel=LIMITS)
    ] = 0.01
    max_exposure: Annotated[
        float | None, typer.Option(help="Fail above this exposure of any canary, in bits.", rich_help_panel=LIMITS)
    ] = None
    max_epsilon_lower_bound: Annotated[
        float | None,
        typer.Option(
            help="Fail when the canaries prove a larger ε than this, for all records of a canary together.",
            rich_help_panel=LIMITS,
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Fail only what is worse than this file of --write-baseline records: a model or other canaries that "
            "it does not know, a canary or test that did not fail then, or an exposure that has risen by more than "
            "1 bit. Models are known by their paths as given.",
            rich_help_panel=LIMITS,
        ),
    ] = None
    exit_zero: Annotated[
        bool,
        typer.Option(
            "--exit-zero", help="Exit with 0 in place of 1 and of 4; 2, 3 and 130 stay.", rich_help_panel=LIMITS
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class BoundOptions:
    """What the auditor of ε may do. Choose before you look at any model: the bounds do not hold otherwise."""

    guesses: Annotated[
        int | None,
        typer.Option(
            help="How many coins of --in-out to guess, an even number; half of the canaries unless given.",
            rich_help_panel=BOUNDS,
        ),
    ] = None
    top: Annotated[
        int | None,
        typer.Option(
            help="A canary within this rank counts as found; the square root of the candidates unless given.",
            rich_help_panel=BOUNDS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What else is tried on each model. None of it changes the verdict."""

    attacks: Annotated[
        str,
        typer.Option(
            help="Some of extraction,membership,resurfacing, with commas between them.", rich_help_panel=ATTACKS
        ),
    ] = ""
    samples: Annotated[int, typer.Option(help="Continuations that extraction draws.", rich_help_panel=ATTACKS)] = 1000
    other_text: Annotated[
        Path | None,
        typer.Option(
            help="For resurfacing: text without the canaries that a copy is fine-tuned on and then audited again.",
            rich_help_panel=ATTACKS,
        ),
    ] = None
    resurfacing_steps: Annotated[int, typer.Option(help="Steps of that fine-tuning.", rich_help_panel=ATTACKS)] = 50
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Describe all candidates: a histogram of log p, and the likeliest with their probabilities.",
            rich_help_panel=ATTACKS,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class NumberOptions:
    """The corpus' own numbers."""

    secrets: Annotated[
        Path | None,
        typer.Option(
            help="What atdp detect wrote for --data: rank the corpus's own numbers among others of their format.",
            rich_help_panel=OWN,
        ),
    ] = None
    data: Annotated[Path | None, typer.Option(help="The corpus of --secrets.", rich_help_panel=OWN)] = None
    most_secrets: Annotated[
        int, typer.Option(help="How many of the corpus's numbers to test, at most.", rich_help_panel=OWN)
    ] = 50
    alternatives: Annotated[
        int,
        typer.Option(
            help="How many alternatives to draw for a number of a format with over 20,000.", rich_help_panel=OWN
        ),
    ] = 1000
    unit: UnitOption = "line"
    text_field: TextField = "text"
    id_field: IdField = None

    def check(self) -> None:
        """Refuse one of --secrets and --data without the other.

        Raises:
            UsageError: As said.
        """
        if (self.secrets is None) != (self.data is None):
            raise UsageError("--secrets and --data go together.", "Give the corpus, and what atdp detect wrote for it.")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The files to write, and what is shown. The files never hold a secret."""

    junit: Annotated[
        Path | None,
        typer.Option(
            help="Write JUnit XML: a suite a model, a case a canary and one for the verdict.", rich_help_panel=OUTPUT
        ),
    ] = None
    sarif: Annotated[
        Path | None,
        typer.Option(help="Write SARIF 2.1.0; its locations are lines of the manifest.", rich_help_panel=OUTPUT),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(help="Record what was found, for --baseline in later runs.", rich_help_panel=OUTPUT),
    ] = None
    show_secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Add the secrets to what is printed, in --full's JSON too. No other JSON and no file holds them.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    force: Force = False

    def check(self) -> None:
        """Refuse, before anything is scored, to write where something is or over one another.

        Raises:
            UsageError: A file exists, or two are the same.
            InputError: A folder does not exist.
        """
        from atdp_cli.files.atomic_write import check_new, real_path

        given = [path for path in (self.junit, self.sarif, self.write_baseline) if path is not None]
        if len({real_path(path) for path in given}) < len(given):
            raise UsageError(
                "--junit, --sarif and --write-baseline name one file twice.", "Give each a file of its own."
            )
        for path in given:
            check_new(path, force=self.force)
