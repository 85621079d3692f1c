"""The request of `audit_canary`, its targets and attacks; wrong requests are refused before a model is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from atdp_cli.audit.canary import Target, Template, find_template
from atdp_cli.audit.epsilon import Games
from atdp_cli.audit.hypothesis_tests import SampleRule, sample_size, split_alpha
from atdp_cli.audit.manifest import Manifest, read_manifest, token_mismatch
from atdp_cli.audit.pool import LARGEST_POOL, sampled
from atdp_cli.audit.results import RANKS, Attack, Gate
from atdp_cli.audit.verdict import Limits
from atdp_cli.detection.options import ExecutorOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.corpus_file import check_readable
from atdp_cli.model.folder import check_folder
from atdp_cli.settings import ComputeOptions, Option

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LIMITS, BOUNDS, ATTACKS = "Limits", "Lower bounds on ε", "Beyond ranks"

NO_CANARIES = (
    "There is nothing to audit: no --manifest and no --canary was given.",
    "Plant canaries before fine-tuning: atdp plant-canary CORPUS -o planted.txt --manifest canaries.json --tokenizer "
    "MODEL. Then give their --manifest.",
)

OTHER_TOKENIZER = "For this one, plant and train again: atdp plant-canary --from plants the same secrets."


def _attacks(given: str | Iterable[str]) -> tuple[str, ...]:
    """`extraction,membership,relearning`, or some of them, in that order."""
    return _named(given, get_args(Attack), "There is no attack '{}'.", "Choose from")


def _gates(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """`ranks,extraction,membership,relearning`, or some of them, in that order."""
    if given is None:
        return None
    gates = _named(given, get_args(Gate), "--fail-on names '{}', and there is no such gate.", "Use")
    if not gates:
        raise UsageError("--fail-on names no gate.", f"Use some of {','.join(get_args(Gate))}.")
    return gates


def _named(given: str | Iterable[str], known: tuple[str, ...], problem: str, remedy: str) -> tuple[str, ...]:
    """Those of the known names that are given, in their order."""
    names = {name.strip(): None for name in (given.split(",") if isinstance(given, str) else given) if name.strip()}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(problem.format(unknown[0]), f"{remedy} {','.join(known)}.")
    return tuple(name for name in known if name in names)


@dataclass(frozen=True, kw_only=True)
class CanaryTargets:
    """The canaries to look for in every model.

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


class AuditRequest(ComputeOptions, ExecutorOptions):
    """The models to audit, the canaries to look for, and the limits that fail a model. `models` are the folders."""

    models: tuple[Path, ...] = ()

    manifest: Annotated[Path | None, Option(main=True)] = None
    """The manifest that plant-canary wrote."""

    canary: Annotated[str | None, Option(main=True)] = None
    """A sentence with its number, if there is no manifest: rank and exposure, no p-value."""

    packed: Annotated[bool, Option()] = False
    """Canaries of plant-canary --role: score them where packing puts conversations, behind the end token of another."""

    reference: Annotated[Path | None, Option(main=True)] = None
    """The public base model: also test against an attacker who holds it."""

    alpha: Annotated[float, Option(LIMITS)] = 0.01
    """Chance of failing a model that remembers nothing."""

    fail_on: Annotated[
        tuple[Gate, ...] | None,
        BeforeValidator(_gates),
        Option(LIMITS, main=True, metavar="GATES", words=lambda: get_args(Gate), joined=","),
    ] = None
    """Which tests can fail a model: some of ranks, extraction, membership and relearning, with commas between them.
    An attack that is named here is tried. Default: ranks, and the --attacks."""

    ranking: Annotated[Literal["auto", "exact", "sampled"], Option(flag=False)] = "auto"
    """exact: rank canaries among all candidates. sampled: among a random sample that is large enough for the tests.
    auto samples only where the tokenizer makes candidates expensive and no option needs all of them."""

    max_exposure: Annotated[float | None, Option(LIMITS, main=True)] = None
    """Fail above this exposure of any canary, in bits."""

    max_epsilon_lower_bound: Annotated[float | None, Option(LIMITS, main=True)] = None
    """Fail when the canaries prove a larger ε than this, for all records of a canary together."""

    coin_guesses: Annotated[int | None, Option(flag=False)] = None
    """How many coins of --in-out to guess, an even number. Default: half of the canaries. Choose it before you look at
    any model: the bound does not hold otherwise."""

    rank_guesses: Annotated[int | None, Option(flag=False)] = None
    """A canary within this rank counts as found. Default: the square root of the candidates. Choose it before you look
    at any model."""

    attacks: Annotated[
        tuple[Attack, ...],
        BeforeValidator(_attacks),
        Option(ATTACKS, main=True, words=lambda: get_args(Attack), joined=","),
    ] = ()
    """Some of extraction, membership and relearning, with commas between them. Each can fail the model, by a test
    inside --alpha, unless --fail-on leaves it out."""

    continuations: Annotated[int, Field(ge=1, le=10_000_000), Option(flag=False)] = 1000
    """Continuations that extraction draws."""

    other_text: Annotated[Path | None, Option(flag=False)] = None
    """For relearning: text without the canaries that a copy is fine-tuned on and then audited again."""

    relearning_steps: Annotated[int, Field(ge=1, le=100_000), Option(flag=False)] = 50
    """Steps of that fine-tuning."""

    describe_candidates: Annotated[bool, Option(flag=False)] = False
    """Describe all candidates: a histogram of log p, and the likeliest with their probabilities."""

    show_secrets: Annotated[bool, Option("Output")] = False
    """Add the secrets to what is printed, in the JSON of run.describe-candidates too. No other JSON and no file holds
    them."""

    @model_validator(mode="after")
    def _in_range(self) -> "AuditRequest":
        _ = self.limits, self.games
        if "relearning" in self.tried and self.other_text is None:
            raise UsageError(
                "Relearning fine-tunes a copy of the model on other text, and none was given.",
                "Give a text without the canaries: --set run.other-text=FILE.",
            )
        return self

    @property
    def limits(self) -> Limits:
        """The limits that fail a model."""
        return Limits(
            alpha=self.alpha,
            max_exposure=self.max_exposure,
            max_epsilon_lower_bound=self.max_epsilon_lower_bound,
        )

    @property
    def games(self) -> Games:
        """The limits of the ε games."""
        return Games(guesses=self.coin_guesses, top=self.rank_guesses)

    @property
    def tried(self) -> frozenset[Attack]:
        """The attacks to try: those that were named, here or as gates."""
        return frozenset(attack for attack in get_args(Attack) if attack in (*self.attacks, *(self.fail_on or ())))

    @property
    def gates(self) -> frozenset[Gate]:
        """Which tests can fail a model."""
        return frozenset({RANKS, *self.attacks} if self.fail_on is None else self.fail_on)

    @property
    def needs_whole_pool(self) -> str | None:
        """The option that a sample cannot answer; None where there is none."""
        asked = {
            "run.describe-candidates": self.describe_candidates,
            "--max-exposure": self.limits.max_exposure is not None,
            "--max-epsilon-lower-bound": self.limits.max_epsilon_lower_bound is not None,
            "run.rank-guesses": self.rank_guesses is not None,
        }
        return next((option for option, given in asked.items() if given), None)

    def sample_rule(self, canaries: CanaryTargets) -> SampleRule | None:
        """The number of candidates to rank the canaries among, by the manifest and the options alone."""
        planted = sum(target.planted for target in canaries.targets)
        if self.ranking == "exact" or self.needs_whole_pool is not None or not (canaries.calibrated and planted):
            return None
        scores, attacks = 1 if self.reference is None else 2, len(self.attack_gates)
        levels = split_alpha(self.limits.alpha, scores=scores, bounds=1, canaries=planted, attacks=attacks)
        return SampleRule(size=sample_size(levels.test, planted), only_where_expensive=self.ranking == "auto")

    @property
    def attack_gates(self) -> frozenset[Gate]:
        """The attacks that are gates."""
        return self.gates - {RANKS}


def load_targets(request: AuditRequest) -> CanaryTargets:
    """The canaries of a manifest, or the one that was typed.

    Raises:
        UsageError: Both were given, or neither, or what is to be packed is no conversation or has no end token before
            it.
        InputError: The manifest is malformed.
    """
    manifest, canary, packed = request.manifest, request.canary, request.packed
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
    """Refuse options that these canaries cannot answer, before any model is read.

    Raises:
        UsageError: An option does not go with the canaries.
    """
    if request.fail_on is not None and not canaries.calibrated:
        raise UsageError(
            "--fail-on chooses among tests, and a secret that nobody drew at random has none.",
            "Give the manifest of plant-canary, or judge the secret by --max-exposure.",
        )
    coins = canaries.manifest is not None and canaries.manifest.coins
    if "membership" in request.tried and not coins:
        raise UsageError(
            "Membership compares canaries that a coin put in with those that it left out.",
            "Plant them with plant-canary --in-out.",
        )
    if request.ranking == "sampled" and (option := request.needs_whole_pool) is not None:
        raise UsageError(
            f"run.ranking=sampled ranks within a sample, and {option} needs all candidates.", "Leave one out."
        )
    if request.coin_guesses is not None and not coins:
        raise UsageError("run.coin-guesses is about coins, and none were tossed.", "Plant with plant-canary --in-out.")
    if request.describe_candidates and sampled(canaries.template):
        raise UsageError(
            f"run.describe-candidates describes all candidates, and the template has over {LARGEST_POOL:,}.",
            "Use a shorter slot.",
        )


def prepare_audit(request: AuditRequest) -> CanaryTargets:
    """Check a request, and return the canaries to look for. Of several models a bad one is not refused.

    Raises:
        UsageError: The options contradict each other or the canaries.
        InputError: The manifest, the reference, the other text or the only model cannot be read.
    """
    canaries = load_targets(request)
    check_request(canaries, request)
    if not request.models:
        raise UsageError("None of the folders is a model.", "Give folders as save_pretrained writes them.")
    if request.reference is not None:
        check_folder(request.reference)
    if len(request.models) == 1:
        check_folder(request.models[0], audited=True)
    if request.other_text is not None:
        check_readable(request.other_text)
    return canaries
