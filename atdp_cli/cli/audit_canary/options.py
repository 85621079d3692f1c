"""The options of `atdp audit-canary`, by subject."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from atdp_cli.errors import UsageError
from atdp_cli.options import Option, Options
from atdp_cli.text.options import OUTPUT, IdOptions, ReplacingOptions

LIMITS, BOUNDS = "Limits", "Lower bounds on ε"
ATTACKS, OWN = "Beyond ranks", "The corpus's own numbers"


class LimitOptions(Options):
    """What fails a model."""

    alpha: Annotated[
        float,
        Field(description="Chance of failing a model that remembers nothing."),
        Option(panel=LIMITS),
    ] = 0.01
    max_exposure: Annotated[
        float | None,
        Field(description="Fail above this exposure of any canary, in bits."),
        Option(panel=LIMITS),
    ] = None
    max_epsilon_lower_bound: Annotated[
        float | None,
        Field(description="Fail when the canaries prove a larger ε than this, for all records of a canary together."),
        Option(panel=LIMITS),
    ] = None
    baseline: Annotated[
        Path | None,
        Field(
            description="Fail only what is worse than this file of --write-baseline records: a model or other canaries "
            "that it does not know, a canary or test that did not fail then, or an exposure that has risen by more "
            "than 1 bit. Models are known by their paths as given."
        ),
        Option(panel=LIMITS),
    ] = None
    exit_zero: Annotated[
        bool,
        Field(description="Exit with 0 in place of 1 and of 4; 2, 3 and 130 stay."),
        Option(panel=LIMITS),
    ] = False


class BoundOptions(Options):
    """What the auditor of ε may do. Choose before you look at any model: the bounds do not hold otherwise."""

    guesses: Annotated[
        int | None,
        Field(description="How many coins of --in-out to guess, an even number; half of the canaries unless given."),
        Option(panel=BOUNDS),
    ] = None
    top: Annotated[
        int | None,
        Field(description="A canary within this rank counts as found; the square root of the candidates unless given."),
        Option(panel=BOUNDS),
    ] = None


class AttackOptions(Options):
    """What else is tried on each model. None of it changes the verdict."""

    attacks: Annotated[
        str,
        Field(description="Some of extraction,membership,resurfacing, with commas between them."),
        Option(panel=ATTACKS),
    ] = ""
    samples: Annotated[int, Field(description="Continuations that extraction draws."), Option(panel=ATTACKS)] = 1000
    other_text: Annotated[
        Path | None,
        Field(
            description="For resurfacing: text without the canaries that a copy is fine-tuned on and then audited "
            "again."
        ),
        Option(panel=ATTACKS),
    ] = None
    resurfacing_steps: Annotated[int, Field(description="Steps of that fine-tuning."), Option(panel=ATTACKS)] = 50
    full: Annotated[
        bool,
        Field(description="Describe all candidates: a histogram of log p, and the likeliest with their probabilities."),
        Option(panel=ATTACKS),
    ] = False


class NumberOptions(Options):
    """The corpus' own numbers."""

    secrets: Annotated[
        Path | None,
        Field(
            description="What atdp detect wrote for --data: rank the corpus's own numbers among others of their format."
        ),
        Option(panel=OWN),
    ] = None
    data: Annotated[Path | None, Field(description="The corpus of --secrets."), Option(panel=OWN)] = None
    most_secrets: Annotated[
        int,
        Field(description="How many of the corpus's numbers to test, at most."),
        Option(panel=OWN),
    ] = 50
    alternatives: Annotated[
        int,
        Field(description="How many alternatives to draw for a number of a format with over 20,000."),
        Option(panel=OWN),
    ] = 1000


class CorpusNumberOptions(NumberOptions, IdOptions):
    """The same, and what a record of the corpus is."""

    def check(self) -> None:
        """Refuse one of --secrets and --data without the other.

        Raises:
            UsageError: As said.
        """
        if (self.secrets is None) != (self.data is None):
            raise UsageError("--secrets and --data go together.", "Give the corpus, and what atdp detect wrote for it.")


class ReportFileOptions(Options):
    """The files to write, and what is shown. The files never hold a secret."""

    junit: Annotated[
        Path | None,
        Field(description="Write JUnit XML: a suite a model, a case a canary and one for the verdict."),
        Option(panel=OUTPUT),
    ] = None
    sarif: Annotated[
        Path | None,
        Field(description="Write SARIF 2.1.0; its locations are lines of the manifest."),
        Option(panel=OUTPUT),
    ] = None
    write_baseline: Annotated[
        Path | None,
        Field(description="Record what was found, for --baseline in later runs."),
        Option(panel=OUTPUT),
    ] = None
    show_secrets: Annotated[
        bool,
        Field(
            description="Add the secrets to what is printed, in --full's JSON too. No other JSON and no file holds "
            "them."
        ),
        Option(panel=OUTPUT),
    ] = False


class ReportOptions(ReportFileOptions, ReplacingOptions):
    """The same, and whether they may be there already."""

    def check(self) -> None:
        """Refuse, before anything is scored, to write where something is or over one another.

        Raises:
            UsageError: A file exists, or two are the same.
            InputError: A folder does not exist.
        """
        from atdp_cli.files.corpus_file import check_new, real_path

        given = [path for path in (self.junit, self.sarif, self.write_baseline) if path is not None]
        if len({real_path(path) for path in given}) < len(given):
            raise UsageError(
                "--junit, --sarif and --write-baseline name one file twice.", "Give each a file of its own."
            )
        for path in given:
            check_new(path, force=self.force)


class TargetOptions(Options):
    """What is looked for, and in comparison with what."""

    manifest: Annotated[Path | None, Field(description="The manifest that plant-canary wrote."), Option()] = None
    canary: Annotated[
        str | None,
        Field(description="A sentence with its number, if there is no manifest: rank and exposure, no p-value."),
        Option(),
    ] = None
    reference: Annotated[
        Path | None,
        Field(description="The public base model: also test against an attacker who holds it."),
        Option(),
    ] = None
