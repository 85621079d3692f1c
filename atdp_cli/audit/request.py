"""What `audit-canary` is asked, and what it refuses before it reads a model."""

from dataclasses import dataclass
from pathlib import Path

from atdp_cli.audit.alternatives import SAMPLE
from atdp_cli.audit.attacks.attack import NONE, Attack, Attacks
from atdp_cli.audit.canary import Target, Template, find_template
from atdp_cli.audit.epsilon import HALF_AND_ROOT, Games
from atdp_cli.audit.manifest import Manifest, read_manifest
from atdp_cli.audit.number_search import LocatedNumbers
from atdp_cli.audit.pool import LARGEST_POOL, sampled
from atdp_cli.audit.verdict import DEFAULT, Limits
from atdp_cli.errors import UsageError
from atdp_cli.ranges import require_at_least, require_at_most

MOST_ALTERNATIVES = 1_000_000

NO_CANARIES = (
    "There is nothing to audit: no --manifest and no --canary was given.",
    "Canaries must be in the data before fine-tuning: run 'atdp plant-canary CORPUS -o planted.txt --manifest "
    "canaries.json --tokenizer MODEL', fine-tune on planted.txt, then audit with --manifest canaries.json.",
)


@dataclass(frozen=True, kw_only=True)
class CanaryTargets:
    """What is asked of every model.

    Attributes:
        manifest: None for a secret that was typed by hand, which is uncalibrated.
    """

    template: Template
    targets: tuple[Target, ...]
    manifest: Manifest | None

    @property
    def calibrated(self) -> bool:
        """Whether the secrets were drawn at random."""
        return self.manifest is not None and self.manifest.calibrated


@dataclass(frozen=True, kw_only=True)
class CorpusNumbers:
    """Numbers of the corpus itself, and how many alternatives to draw for those with too many to list."""

    located: LocatedNumbers
    sample: int = SAMPLE

    def __post_init__(self) -> None:
        require_at_least("alternatives", self.sample, 1)
        require_at_most("alternatives", self.sample, MOST_ALTERNATIVES)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What is done with every model, and what fails it.

    Attributes:
        reference: Folder of the public base model.
        full: Describe the distribution over all candidates.
        shown: Say there what the likeliest candidates are.
        own: The corpus' own numbers, to be ranked too.
    """

    reference: Path | None = None
    limits: Limits = DEFAULT
    games: Games = HALF_AND_ROOT
    attacks: Attacks = NONE
    full: bool = False
    shown: bool = False
    own: CorpusNumbers | None = None


def load_request(manifest: Path | None, canary: str | None) -> CanaryTargets | None:
    """The question that a manifest or a typed canary asks; None where neither was given.

    Raises:
        UsageError: Both were given.
        InputError: The manifest is malformed.
    """
    if manifest is not None and canary is not None:
        raise UsageError("--manifest and --canary exclude each other.", "Give one of them.")
    if manifest is not None:
        found = read_manifest(manifest)
        return CanaryTargets(template=found.slots(), targets=found.targets(), manifest=found)
    if canary is None:
        return None
    template, secret = find_template(canary)
    target = Target(index=template.index_of(secret), repeats=1)
    return CanaryTargets(template=template, targets=(target,), manifest=None)


def check_request(question: CanaryTargets | None, request: AuditRequest) -> None:
    """Refuses, before any model is read, what cannot be answered.

    Raises:
        UsageError: As said.
    """
    if question is None:
        if request.own is None:
            raise UsageError(*NO_CANARIES)
        if request.attacks.wanted or request.full:
            raise UsageError("--attacks and --full are about canaries, and there are none.", "Give --manifest.")
        return
    coins = question.manifest is not None and question.manifest.coins
    if Attack.MEMBERSHIP in request.attacks.wanted and not coins:
        raise UsageError(
            "--attacks membership compares canaries that a coin put in with those that it left out.",
            "Plant them with plant-canary --in-out.",
        )
    if request.games.guesses is not None and not coins:
        raise UsageError("--guesses is about coins, and none were tossed.", "Plant with plant-canary --in-out.")
    if request.full and sampled(question.template):
        raise UsageError(
            f"--full describes all candidates, and the template has over {LARGEST_POOL:,}.", "Use a shorter slot."
        )
