"""What to audit, which attacks to try, and what is refused before a model is read."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from atdp_cli.audit.canary import Target, Template, find_template
from atdp_cli.audit.epsilon import HALF_AND_ROOT, Games
from atdp_cli.audit.levels import Exact, SampleRule, sample_size, split_alpha
from atdp_cli.audit.manifest import Manifest, read_manifest, token_mismatch
from atdp_cli.audit.pool import LARGEST_POOL, sampled
from atdp_cli.audit.verdict import DEFAULT_LIMITS, Limits
from atdp_cli.audit_result import RANKS, Gate
from atdp_cli.errors import UsageError
from atdp_cli.ranges import require_at_least, require_at_most

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MOST_SAMPLES = 10_000_000
MOST_STEPS = 100_000

NO_CANARIES = (
    "There is nothing to audit: no --manifest and no --canary was given.",
    "Plant canaries before fine-tuning: atdp plant-canary CORPUS -o planted.txt --manifest canaries.json --tokenizer "
    "MODEL. Then give their --manifest.",
)


OTHER_TOKENIZER = "For this one, plant and train again: atdp plant-canary --from plants the same secrets."


class Attack(StrEnum):
    """What can be tried on a model beside ranking its canaries."""

    EXTRACTION = "extraction"
    MEMBERSHIP = "membership"
    RELEARNING = "resurfacing"


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """The attacks on every model, and how hard each is tried.

    Attributes:
        samples: Continuations that extraction draws.
        other_text: What a copy of the model is fine-tuned on before it is audited again.
        steps: Of that fine-tuning.

    Raises:
        UsageError: A number is out of range, or a file is missing.
    """

    chosen: frozenset[Attack] = frozenset()
    samples: int = 1000
    other_text: Path | None = None
    steps: int = 50

    @property
    def gates(self) -> frozenset[Gate]:
        """Each of them as a gate."""
        return frozenset(gate for gate in get_args(Gate) if gate in self.chosen)

    def __post_init__(self) -> None:
        for name, value, most in (
            ("samples", self.samples, MOST_SAMPLES),
            ("resurfacing-steps", self.steps, MOST_STEPS),
        ):
            require_at_least(name, value, 1)
            require_at_most(name, value, most)
        if Attack.RELEARNING in self.chosen and self.other_text is None:
            raise UsageError(
                "Resurfacing fine-tunes a copy of the model on other text, and none was given.",
                "Give a text without the canaries by --other-text.",
            )


def parse_attacks(text: str) -> frozenset[Attack]:
    """Reads `extraction,membership,resurfacing`, or some of them.

    Raises:
        UsageError: There is no such attack.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in set(Attack)]:
        raise UsageError(f"There is no attack '{unknown[0]}'.", f"Choose from {','.join(Attack)}.")
    return frozenset(Attack(name) for name in names)


def parse_gates(text: str) -> frozenset[Gate]:
    """Reads `ranks,extraction,membership,resurfacing`, or some of them.

    Raises:
        UsageError: There is no such gate, or none is named.
    """
    known = get_args(Gate)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"--fail-on names '{unknown[0]}', and there is no such gate.", f"Use {','.join(known)}.")
    if not names:
        raise UsageError("--fail-on names no gate.", f"Use some of {','.join(known)}.")
    return frozenset(gate for gate in known if gate in names)


@dataclass(frozen=True, kw_only=True)
class CanaryTargets:
    """The canaries that are looked for in every model.

    Attributes:
        manifest: None for a secret that was typed by hand, which is uncalibrated.
        packed: Conversations are scored behind the end token of another one.
    """

    template: Template
    targets: tuple[Target, ...]
    manifest: Manifest | None
    packed: bool = False

    @property
    def calibrated(self) -> bool:
        """Whether the secrets were drawn at random."""
        return self.manifest is not None and self.manifest.calibrated

    @property
    def scored(self) -> Template:
        """The template of what a model reads; its secrets are those of `template`."""
        return self.template if self.manifest is None else self.manifest.scored(packed=self.packed)

    def reader(self, tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
        """The tokenizer that splits the records of `scored`."""
        return tokenizer if self.manifest is None else self.manifest.reader(tokenizer)

    def mismatch(self, tokenizer: "PreTrainedTokenizerFast") -> str | None:
        """Why the planted tokens are not those that `tokenizer` would audit; None if they are."""
        problem = None if self.manifest is None else token_mismatch(self.manifest, tokenizer, packed=self.packed)
        return None if problem is None else f"{problem} {OTHER_TOKENIZER}"


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What is done with every model, and what fails it.

    Attributes:
        reference: Folder of the public base model.
        fail_on: Which tests can fail a model; None for the ranks and every attack that is tried. Its attacks are among
            those of `attacks`.
        exact: Whether canaries are ranked among all candidates. Where it is `auto`, a sample is enough for the tests,
            and not for a limit, a bound on ε that is asked for, or the distribution.
        full: Describe the distribution over all candidates.
        show_secrets: Say there what the likeliest candidates are.
    """

    reference: Path | None = None
    limits: Limits = DEFAULT_LIMITS
    games: Games = HALF_AND_ROOT
    attacks: Attacks = Attacks()
    full: bool = False
    show_secrets: bool = False
    fail_on: frozenset[Gate] | None = None
    exact: Exact = "auto"
    device: str = "auto"

    @property
    def gates(self) -> frozenset[Gate]:
        """Which tests can fail a model."""
        return self.attacks.gates | {RANKS} if self.fail_on is None else self.fail_on

    @property
    def needs_whole_pool(self) -> str | None:
        """The option that a sample cannot answer; None where there is none."""
        asked = {
            "--full": self.full,
            "--max-exposure": self.limits.max_exposure is not None,
            "--max-epsilon-lower-bound": self.limits.max_epsilon_lower_bound is not None,
            "--top": self.games.top is not None,
        }
        return next((option for option, given in asked.items() if given), None)

    def sample_rule(self, canaries: CanaryTargets) -> SampleRule | None:
        """When the canaries are ranked among how many, decided by what was planted and asked for alone."""
        planted = sum(target.planted for target in canaries.targets)
        if self.exact == "always" or self.needs_whole_pool is not None or not (canaries.calibrated and planted):
            return None
        scores, attacks = 1 if self.reference is None else 2, len(self.attack_gates)
        levels = split_alpha(self.limits.alpha, scores=scores, bounds=1, canaries=planted, attacks=attacks)
        return SampleRule(size=sample_size(levels.test, planted), only_where_expensive=self.exact == "auto")

    @property
    def attack_gates(self) -> frozenset[Gate]:
        """The attacks among them."""
        return self.gates - {RANKS}


def load_request(manifest: Path | None, canary: str | None, *, packed: bool = False) -> CanaryTargets:
    """The canaries of a manifest, or the one that was typed.

    Args:
        packed: Score conversations behind the end token of another one.

    Raises:
        UsageError: Both were given, or neither, or what is to be packed is no conversation or has no end token before
            it.
        InputError: The manifest is malformed.
    """
    if manifest is not None and canary is not None:
        raise UsageError("--manifest and --canary exclude each other.", "Give one of them.")
    if manifest is not None:
        planted = read_manifest(manifest)
        if packed and (planted.conversation is None or planted.conversation.end is None):
            problem = "the canaries are no conversations" if planted.conversation is None else "there is none"
            raise UsageError(
                f"--packed scores conversations behind an end token, and {problem}.", "Leave --packed out."
            )
        return CanaryTargets(template=planted.slots(), targets=planted.targets(), manifest=planted, packed=packed)
    if packed:
        raise UsageError("--packed is about the conversations of a manifest.", "Give --manifest, or leave it out.")
    if canary is None:
        raise UsageError(*NO_CANARIES)
    template, secret = find_template(canary)
    target = Target(index=template.index_of(secret), repeats=1)
    return CanaryTargets(template=template, targets=(target,), manifest=None)


def check_request(canaries: CanaryTargets, request: AuditRequest) -> None:
    """Refuses, before any model is read, what these canaries cannot answer.

    Raises:
        UsageError: An option does not go with the canaries.
    """
    if request.fail_on is not None and not canaries.calibrated:
        raise UsageError(
            "--fail-on chooses among tests, and a secret that nobody drew at random has none.",
            "Give the manifest of plant-canary, or judge the secret by --max-exposure.",
        )
    coins = canaries.manifest is not None and canaries.manifest.coins
    if Attack.MEMBERSHIP in request.attacks.chosen and not coins:
        raise UsageError(
            "Membership compares canaries that a coin put in with those that it left out.",
            "Plant them with plant-canary --in-out.",
        )
    if request.exact == "never" and (option := request.needs_whole_pool) is not None:
        raise UsageError(f"--exact never ranks within a sample, and {option} needs all candidates.", "Leave one out.")
    if request.games.guesses is not None and not coins:
        raise UsageError("--guesses is about coins, and none were tossed.", "Plant with plant-canary --in-out.")
    if request.full and sampled(canaries.template):
        raise UsageError(
            f"--full describes all candidates, and the template has over {LARGEST_POOL:,}.", "Use a shorter slot."
        )
