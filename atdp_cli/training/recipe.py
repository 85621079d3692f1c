"""Recipes: a recipe is a tuple of stages, and `+` joins two of them."""

import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, get_args

from atdp_cli.errors import UsageError
from atdp_cli.privacy.schedule import Constant, RiseReset, Schedule
from atdp_cli.ranges import (
    require_at_least,
    require_at_most,
    require_fraction,
    require_noise,
    require_one_of,
    require_positive,
)


class Text(StrEnum):
    """Which text a stage reads: decoys are drawn anew for every epoch."""

    RAW = "raw"
    REDACTED = "redacted"
    DECOY = "decoy"


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Cross-entropy with weight 1 on every token."""


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """Cross-entropy with weight 1 on sensitive tokens and function words, and w ≤ 1 on the rest.

    Attributes:
        weight: A public constant in [0, 1]; `record` (from the record's own share of sensitive tokens); or
            `released` (from the corpus' share, released once with Gaussian noise and put in the ledger).
        target_share: r in (0, 1), the share of the weight that sensitive tokens should carry; not for a constant.
        release_noise_multiplier: σ of the release, whose sensitivity is 1 record.
    """

    weight: float | Literal["record", "released"] = 0.2
    target_share: float = 0.5
    release_noise_multiplier: float = 20.0

    def __post_init__(self) -> None:
        if not isinstance(self.weight, str) and not 0 <= self.weight <= 1:
            raise UsageError(f"weight is {self.weight}.", "Choose a number from 0 to 1, record, or released.")
        require_fraction("target-share", self.target_share)
        require_noise("release-noise", self.release_noise_multiplier)


Target = Literal["reference", "without-true"]


@dataclass(frozen=True, kw_only=True)
class Anchored:
    """KL(reference ‖ model) on sensitive tokens; cross-entropy on the rest, as `Weighted` weighs it.

    A sensitive token is pulled back to what the reference, a public model, says at its place; what stands there in
    the record is not learnt.

    Attributes:
        weight: w of tokens that are neither sensitive nor function words, a public constant in [0, 1].
        strength: The weight of a sensitive token in its record's sum, above 0; function words have 1.
        temperature: T > 0; the reference's distribution is softmax(its logits / T).
        target: `reference` is that distribution; `without-true` is it given that the token is not the one that
            stands there, so that what the reference knows of the record is not taught either.
    """

    weight: float = 0.2
    strength: float = 1.0
    temperature: float = 1.0
    target: Target = "reference"

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise UsageError(f"weight is {self.weight}.", "Choose a number from 0 to 1.")
        require_positive("strength", self.strength)
        require_positive("temperature", self.temperature)
        require_one_of("target", self.target, get_args(Target))


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """No loss: a private stage's noise alone, the control that any recipe must beat."""


Objective = Uniform | Weighted | Anchored | Nothing


@dataclass(frozen=True, kw_only=True)
class Plain:
    """Ordinary minibatch training on shuffled epochs, without protection."""

    batch_size: int = 16

    def __post_init__(self) -> None:
        require_at_least("batch-size", self.batch_size, 1)


@dataclass(frozen=True, kw_only=True)
class DPSGD:
    """Poisson sampling, per-record clipping, Gaussian noise (Abadi et al. 2016).

    Attributes:
        clip_norm: C > 0, the largest L2 norm of a record's gradient.
        expected_batch: B ≥ 1, the expected records a step; None means min(256, ⌈N/4⌉).
        schedule: The noise multiplier over the epochs.
    """

    clip_norm: float = 0.1
    expected_batch: int | None = None
    schedule: Schedule

    def __post_init__(self) -> None:
        require_positive("clip-norm", self.clip_norm)
        if self.expected_batch is not None:
            require_at_least("batch-size", self.expected_batch, 1)


Towards = Literal["zero", "start"]
"""Where weight decay pulls parameters: θ ← θ − ηλθ, or θ ← θ − ηλ(θ − θ₀) with θ₀ from the start of the stage
(Li, Grandvalet and Davoine 2018, L2-SP), in both cases with the gradient's step beside it."""


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """torch's AdamW (Loshchilov and Hutter 2019).

    Attributes:
        learning_rate: η > 0.
        weight_decay: λ ≥ 0, decoupled.
    """

    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    towards: Towards = "zero"

    def __post_init__(self) -> None:
        _check_optimizer(self)


@dataclass(frozen=True, kw_only=True)
class AdamBC:
    """AdamW whose second moment is corrected for the noise (Tang, Shpilevskiy and Lécuyer 2024, DP-AdamBC).

    Attributes:
        learning_rate: η > 0.
        weight_decay: λ ≥ 0, decoupled.
        floor: The least that is left of a second moment, as a share of the noise's variance, above 0: what keeps
            coordinates of little signal from taking steps without bound. A step is at most
            √(1 + 1/floor) times as long as AdamW's. The paper's γ' is floor·(σC/B)².
    """

    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    towards: Towards = "zero"
    floor: float = 0.1

    def __post_init__(self) -> None:
        _check_optimizer(self)
        require_positive("floor", self.floor)


@dataclass(frozen=True, kw_only=True)
class SGD:
    """torch's SGD.

    Attributes:
        learning_rate: η > 0.
        weight_decay: λ ≥ 0.
    """

    learning_rate: float
    weight_decay: float = 0.0
    towards: Towards = "zero"

    def __post_init__(self) -> None:
        _check_optimizer(self)


Optimizer = AdamW | AdamBC | SGD


def _check_optimizer(optimizer: Optimizer) -> None:
    require_positive("learning-rate", optimizer.learning_rate)
    require_at_least("weight-decay", optimizer.weight_decay, 0)
    require_one_of("towards", optimizer.towards, get_args(Towards))


Annealing = Literal["none", "linear"]

MOST_EPOCHS = 10_000


@dataclass(frozen=True, kw_only=True)
class Train:
    """One stage of training, started with a fresh optimizer.

    Attributes:
        name: Unique in its recipe; the key of `--set NAME.option=value`.
        epochs: Passes over the corpus, in expectation for a private stage.
        layers: `all`, or a regular expression: only parameters in whose name it is found are trained, clipped and
            given noise.
        annealing: `linear` lets η fall over the stage's steps, the first with all of it, to 0 behind the last; `none`
            keeps it.
        release_noise_multiplier: For decoys, σ of one release of how often public words and digits stand in flagged
            spans, which then are drawn as often; None draws them uniformly and takes nothing from the spans.
    """

    name: str
    text: Text
    objective: Objective
    mechanism: Plain | DPSGD
    epochs: int = 3
    optimizer: Optimizer = AdamW()
    layers: str = "all"
    annealing: Annealing = "none"
    release_noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        require_at_least("epochs", self.epochs, 1)
        require_at_most("epochs", self.epochs, MOST_EPOCHS)
        _check_pattern("layers", self.layers)
        require_one_of("annealing", self.annealing, get_args(Annealing))
        if self.release_noise_multiplier is not None:
            require_noise("release-noise", self.release_noise_multiplier)
            if self.text is not Text.DECOY:
                raise UsageError(f"stage {self.name} reads no decoys.", "Leave its release-noise out.")
        if isinstance(self.mechanism, DPSGD):
            return
        if isinstance(self.optimizer, AdamBC):
            raise UsageError(f"stage {self.name} has no noise for adambc to correct.", "Use the optimizer adamw.")
        if isinstance(self.objective, Weighted) and self.objective.weight == "released":
            raise UsageError(f"stage {self.name} releases a weight without protection.", "Choose a constant weight.")
        if isinstance(self.objective, Nothing):
            raise UsageError(f"stage {self.name} has neither a loss nor noise.", "Give it the mechanism dp-sgd.")


def _check_pattern(name: str, pattern: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what a later version of Python will read in another way
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise UsageError(f"{name} is {pattern!r}, no regular expression.", r"Write one, as in h\.4\.|ln_f.") from error
    if not pattern:
        raise UsageError(f"{name} is empty.", r"Give all, or a regular expression, as in h\.4\.|ln_f.")


@dataclass(frozen=True, kw_only=True)
class Interpolate:
    """Weights drawn towards those of the reference: θ ← θ_ref + β(θ − θ_ref). A control; nothing is trained.

    Attributes:
        name: Unique in its recipe.
        beta: β in [0, 1], how far from the reference to the model the result lies.
    """

    name: str
    beta: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.beta <= 1:
            raise UsageError(f"beta is {self.beta}.", "Choose a number from 0 (the reference) to 1 (the model).")


Stage = Train | Interpolate
Recipe = tuple[Stage, ...]

_RISE_RESET = DPSGD(schedule=RiseReset(noise_multiplier=1.0))

NO_DP: Recipe = (Train(name="no-dp", text=Text.RAW, objective=Uniform(), mechanism=Plain()),)
REDACTED: Recipe = (Train(name="redacted", text=Text.REDACTED, objective=Uniform(), mechanism=Plain()),)
DECOYS: Recipe = (Train(name="decoys", text=Text.DECOY, objective=Uniform(), mechanism=Plain()),)
FITTED_DECOYS: Recipe = (
    Train(
        name="fitted-decoys",
        text=Text.DECOY,
        objective=Uniform(),
        mechanism=Plain(),
        optimizer=AdamW(learning_rate=2e-3),
        annealing="linear",
        release_noise_multiplier=2.5,
    ),
)
DP_SGD: Recipe = (
    Train(
        name="dp-sgd",
        text=Text.RAW,
        objective=Uniform(),
        mechanism=DPSGD(schedule=Constant(noise_multiplier=1.0)),
    ),
)
ATDP: Recipe = (Train(name="atdp", text=Text.RAW, objective=Weighted(), mechanism=_RISE_RESET),)

ANCHORED: Recipe = (Train(name="anchored", text=Text.RAW, objective=Anchored(), mechanism=_RISE_RESET),)
NOISE: Recipe = (Train(name="noise", text=Text.RAW, objective=Nothing(), mechanism=_RISE_RESET),)
INTERPOLATE: Recipe = (Interpolate(name="interpolate"),)

RECIPES: Mapping[str, Recipe] = {
    "base": (),
    "no-dp": NO_DP,
    "redacted": REDACTED,
    "decoys": DECOYS,
    "fitted-decoys": FITTED_DECOYS,
    "jft": REDACTED + DP_SGD,
    "dp-sgd": DP_SGD,
    "atdp": ATDP,
    "anchored": ANCHORED,
    "noise": NOISE,
    "interpolate": INTERPOLATE,
}


def parse_recipe(text: str) -> Recipe:
    """`redacted+atdp` → the stages of both, in order; a name that comes twice gets a number.

    Raises:
        UsageError: A part is not the name of a recipe.
    """
    stages: list[Stage] = []
    seen: Counter[str] = Counter()
    for part in text.split("+"):
        if part not in RECIPES:
            raise UsageError(
                f"recipe '{part}' is not known.", f"Join any of {', '.join(RECIPES)} by +, as in redacted+atdp."
            )
        for stage in RECIPES[part]:
            seen[stage.name] += 1
            count = seen[stage.name]
            stages.append(stage if count == 1 else replace(stage, name=f"{stage.name}-{count}"))
    return tuple(stages)


def mechanism_of(stage: Stage) -> Plain | DPSGD | None:
    """How a stage trains; None where it doesn't."""
    return stage.mechanism if isinstance(stage, Train) else None


def reads_records(stage: Stage) -> bool:
    """Whether any record has a say in what the stage does."""
    return isinstance(stage, Train) and not isinstance(stage.objective, Nothing)


def can_stop(stage: Stage) -> bool:
    """Whether the stage is private, so that it may end before its plan does: what it left out is spent as well."""
    return reads_records(stage) and isinstance(mechanism_of(stage), DPSGD)


def reads_reference(stage: Stage) -> bool:
    """Whether the stage needs a reference model."""
    return isinstance(stage, Interpolate) or isinstance(stage.objective, Anchored)


def last_private(recipe: Recipe) -> int:
    """The position of the stage that bare options act on: the last with noise, or the last one where none is.

    Raises:
        UsageError: The recipe has no stage.
    """
    if not recipe:
        raise UsageError("The recipe has no stage for this option to act on.", "Add one by +, as in base+atdp.")
    private = [position for position, stage in enumerate(recipe) if isinstance(mechanism_of(stage), DPSGD)]
    return private[-1] if private else len(recipe) - 1


ClippingEngineName = Literal["bookkeeping", "opacus", "loop"]
ENGINES: tuple[ClippingEngineName, ...] = ("bookkeeping", "opacus", "loop")
"""In the order in which `auto` tries them."""

Precision = Literal["float32", "bfloat16"]
