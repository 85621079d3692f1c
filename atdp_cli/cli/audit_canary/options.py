"""The options of `atdp audit-canary`, by subject."""

from pathlib import Path
from typing import Annotated, Literal

from atdp_cli.cli.terminal.ci_files import CiFiles
from atdp_cli.options import Option, Options
from atdp_cli.text.options import OUTPUT, ReplacingOptions

LIMITS, BOUNDS = "Limits", "Lower bounds on ε"
ATTACKS = "Beyond ranks"


def _attacks() -> list[str]:
    from atdp_cli.audit.request import Attack

    return list(Attack)


def _gates() -> list[str]:
    from atdp_cli.audit_result import RANKS

    return [RANKS, *_attacks()]


class LimitOptions(Options):
    """What fails a model."""

    alpha: Annotated[float, Option(LIMITS)] = 0.01
    """Chance of failing a model that remembers nothing."""

    fail_on: Annotated[str | None, Option(LIMITS, main=True, metavar="GATES", words=_gates, joined=",")] = None
    """Which tests can fail a model: some of ranks, extraction, membership and resurfacing, with commas between them.
    An attack that is named here is tried. Default: ranks, and the --attacks."""

    exact: Annotated[Literal["auto", "always", "never"], Option(LIMITS, metavar="WHEN")] = "auto"
    """Rank among all candidates always, never, or auto: a random sample that is large enough for the tests is drawn
    only where the tokenizer makes candidates expensive, and nothing else that is asked for needs all of them."""

    max_exposure: Annotated[float | None, Option(LIMITS, main=True)] = None
    """Fail above this exposure of any canary, in bits."""

    max_epsilon_lower_bound: Annotated[float | None, Option(LIMITS, main=True)] = None
    """Fail when the canaries prove a larger ε than this, for all records of a canary together."""

    baseline: Annotated[Path | None, Option(LIMITS, main=True)] = None
    """Fail only what is worse than this file of --write-baseline records: a model or other canaries that it does not
    know, a canary or test that did not fail then, or an exposure that has risen by more than 1 bit. Models are known
    by their paths as given."""

    exit_zero: Annotated[bool, Option(LIMITS)] = False
    """Exit with 0 in place of 1 and of 4; 2, 3 and 130 stay."""


class BoundOptions(Options):
    """What the auditor of ε may do. Choose before you look at any model: the bounds do not hold otherwise."""

    guesses: Annotated[int | None, Option(BOUNDS)] = None
    """How many coins of --in-out to guess, an even number; half of the canaries unless given."""

    top: Annotated[int | None, Option(BOUNDS)] = None
    """A canary within this rank counts as found; the square root of the candidates unless given."""


class AttackOptions(Options):
    """What else is tried on each model."""

    attacks: Annotated[str, Option(ATTACKS, main=True, words=_attacks, joined=",")] = ""
    """Some of extraction, membership and resurfacing, with commas between them. Each can fail the model, by a test
    inside --alpha, unless --fail-on leaves it out."""

    samples: Annotated[int, Option(ATTACKS)] = 1000
    """Continuations that extraction draws."""

    other_text: Annotated[Path | None, Option(ATTACKS)] = None
    """For resurfacing: text without the canaries that a copy is fine-tuned on and then audited again."""

    resurfacing_steps: Annotated[int, Option(ATTACKS)] = 50
    """Steps of that fine-tuning."""

    full: Annotated[bool, Option(ATTACKS)] = False
    """Describe all candidates: a histogram of log p, and the likeliest with their probabilities."""


class ReportFileOptions(Options):
    """The files to write, and what is shown. The files never hold a secret."""

    junit: Annotated[Path | None, Option(OUTPUT, main=True)] = None
    """Write JUnit XML: a suite a model, a case a canary and one for the verdict."""

    sarif: Annotated[Path | None, Option(OUTPUT, main=True)] = None
    """Write SARIF 2.1.0; its locations are lines of the manifest."""

    write_baseline: Annotated[Path | None, Option(OUTPUT, main=True)] = None
    """Record what was found, for --baseline in later runs."""

    show_secrets: Annotated[bool, Option(OUTPUT)] = False
    """Add the secrets to what is printed, in --full's JSON too. No other JSON and no file holds them."""


class ReportOptions(ReportFileOptions, ReplacingOptions):
    """The same, and whether they may be there already."""

    @property
    def files(self) -> CiFiles:
        """The files to write."""
        return CiFiles(junit=self.junit, sarif=self.sarif, baseline=self.write_baseline)


class TargetOptions(Options):
    """What is looked for, and in comparison with what."""

    manifest: Annotated[Path | None, Option(main=True)] = None
    """The manifest that plant-canary wrote."""

    canary: Annotated[str | None, Option(main=True)] = None
    """A sentence with its number, if there is no manifest: rank and exposure, no p-value."""

    packed: Annotated[bool, Option()] = False
    """Canaries of plant-canary --role: score them where packing puts conversations, behind the end token of another."""

    reference: Annotated[Path | None, Option(main=True)] = None
    """The public base model: also test against an attacker who holds it."""
