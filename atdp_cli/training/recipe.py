"""Recipes: tuples of stages, joined by `+`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from atdp_cli.errors import UsageError, did_you_mean
from atdp_cli.privacy.schedule import Constant, NoiseMultiplier, RiseReset, Schedule
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.settings import Positive, contradiction, validated
from atdp_cli.training.objectives import BASELINES, Interpolate, Objective, Uniform, Unlearning, Weighted

Count = Annotated[int, Field(ge=1)]


class TextVariant(StrEnum):
    """The text that a stage reads: decoys are drawn anew for every epoch."""

    RAW = "raw"
    REDACTED = "redacted"
    DECOY = "decoy"


@validated
class NonPrivate:
    """Ordinary minibatch training on shuffled epochs, without protection."""

    kind: Literal["plain"] = "plain"
    batch_size: Count = 16


@validated
class DPSGD:
    """Poisson sampling, per-record clipping, Gaussian noise (Abadi et al. 2016).

    Attributes:
        clip_norm: C > 0, the largest L2 norm of a record's gradient.
        expected_batch: B ≥ 1, the expected records a step; None means min(256, ⌈N/4⌉).
        schedule: The noise multiplier over the epochs.
    """

    kind: Literal["dp-sgd"] = "dp-sgd"
    clip_norm: Positive = 0.1
    expected_batch: Count | None = None
    schedule: Schedule


Mechanism = Annotated[NonPrivate | DPSGD, Field(discriminator="kind")]

_WeightDecay = Annotated[float, Field(ge=0)]


@validated
class AdamW:
    """torch's AdamW (Loshchilov and Hutter 2019).

    Attributes:
        learning_rate: η > 0.
        weight_decay: λ ≥ 0, decoupled.
    """

    state_slots: ClassVar[int] = 2

    kind: Literal["adamw"] = "adamw"
    learning_rate: Positive = 5e-4
    weight_decay: _WeightDecay = 0.01


@validated
class SGD:
    """torch's SGD.

    Attributes:
        learning_rate: η > 0.
        weight_decay: λ ≥ 0.
    """

    state_slots: ClassVar[int] = 0

    kind: Literal["sgd"] = "sgd"
    learning_rate: Positive
    weight_decay: _WeightDecay = 0.0


# `state_slots` are the numbers that an optimizer keeps of each parameter.
Optimizer = Annotated[AdamW | SGD, Field(discriminator="kind")]

Annealing = Literal["none", "linear"]

Epochs = Annotated[int, Field(ge=1, le=10_000)]


@validated
class Train:
    """One stage: training, started with a fresh optimizer, or a single change of the weights (`Interpolate`).

    Attributes:
        name: Unique in its recipe; the key of `--set NAME.option=value`.
        epochs: Passes over the corpus, in expectation for a private stage.
        annealing: `linear` lets η fall over the stage's steps, the first with all of it, to 0 behind the last; `none`
            keeps it.
        warmup: The share of the stage's steps over which η rises in equal parts, beside the annealing; None for none.
        restore_best: The stage ends with the weights of the epoch with the lowest loss on decoyed held-out text.
        release_noise_multiplier: For decoys, σ of one release of how often words and digits stand in flagged
            spans, which then are drawn as often; None draws them uniformly and takes nothing from the spans.
        decoy_equality: For decoys, whether equal values of a record get equal decoys.
    """

    name: str
    text: TextVariant
    objective: Objective
    mechanism: Mechanism
    epochs: Epochs = 3
    optimizer: Optimizer = AdamW()
    annealing: Annealing = "none"
    warmup: Annotated[float, Field(gt=0, lt=1)] | None = None
    restore_best: bool | None = None
    release_noise_multiplier: NoiseMultiplier | None = None
    decoy_equality: DecoyEquality = "record"

    def __post_init__(self) -> None:
        of_decoys = {
            "release-noise": self.release_noise_multiplier is not None,
            "decoy-equality": self.decoy_equality != "record",
        }
        for option, given in of_decoys.items():
            if given and self.text is not TextVariant.DECOY:
                raise contradiction(f"stage {self.name} reads no decoys.", f"Leave its {option} out.")
        if self.restore_best and not (self.text is TextVariant.DECOY and isinstance(self.mechanism, NonPrivate)):
            raise contradiction(f"stage {self.name} does not read decoys without noise.", "Leave its restore-best out.")
        self._check_demands()

    def _check_demands(self) -> None:
        """Check what the objective requires of the stage."""
        demands, noisy = self.objective.demands, isinstance(self.mechanism, DPSGD)
        if demands.raw and self.text is not TextVariant.RAW:
            problem = f"stage {self.name} has to read raw text for its objective, {self.objective.kind}."
            raise contradiction(problem, "Give it the text raw.")
        if noisy and demands.noise == "never":
            problem = f"stage {self.name} has to train without noise for its objective, {self.objective.kind}."
            raise contradiction(problem, "Give it the mechanism plain.")
        if not noisy and demands.noise == "always":
            raise contradiction(f"stage {self.name} has neither a loss nor noise.", "Give it the mechanism dp-sgd.")


Recipe = tuple[Train, ...]

_UNIONS = {"objective": Objective, "mechanism": Mechanism, "schedule": Schedule, "optimizer": Optimizer}

SUMS: Mapping[str, Mapping[str, type[Any]]] = {
    field: {part.kind: part for part in get_args(get_args(union)[0])} for field, union in _UNIONS.items()
}
"""The types that a field can hold, by kind, for each field with several."""

_CONSTANT = DPSGD(schedule=Constant(noise_multiplier=1.0))

_RISE_RESET = DPSGD(schedule=RiseReset(noise_multiplier=1.0))

NO_DP: Recipe = (Train(name="no-dp", text=TextVariant.RAW, objective=Uniform(), mechanism=NonPrivate()),)

REDACTED: Recipe = (Train(name="redacted", text=TextVariant.REDACTED, objective=Uniform(), mechanism=NonPrivate()),)

DECOYS: Recipe = (Train(name="decoys", text=TextVariant.DECOY, objective=Uniform(), mechanism=NonPrivate()),)

FITTED_DECOYS: Recipe = (
    Train(
        name="fitted-decoys",
        text=TextVariant.DECOY,
        objective=Uniform(),
        mechanism=NonPrivate(),
        optimizer=AdamW(learning_rate=2e-3),
        annealing="linear",
        release_noise_multiplier=2.5,
    ),
)

DP_SGD: Recipe = (Train(name="dp-sgd", text=TextVariant.RAW, objective=Uniform(), mechanism=_CONSTANT),)

ATDP: Recipe = (Train(name="atdp", text=TextVariant.RAW, objective=Weighted(), mechanism=_RISE_RESET),)


def _baseline(stages: Mapping[str, Objective]) -> Recipe:
    return tuple(
        Train(
            name=name,
            text=TextVariant.RAW,
            objective=objective,
            mechanism=NonPrivate() if objective.demands.noise == "never" else _RISE_RESET,
        )
        for name, objective in stages.items()
    )


RECIPES: Mapping[str, Recipe] = {
    "base": (),
    "no-dp": NO_DP,
    "redacted": REDACTED,
    "decoys": DECOYS,
    "fitted-decoys": FITTED_DECOYS,
    "jft": REDACTED + DP_SGD,
    "dp-sgd": DP_SGD,
    "atdp": ATDP,
    **{name: _baseline(stages) for name, stages in BASELINES.items()},
}


def parse_recipe(text: str) -> Recipe:
    """`redacted+atdp` → the stages of both, in order; a name that comes twice gets a number.

    Raises:
        UsageError: A part is not the name of a recipe.
    """
    stages: list[Train] = []
    seen: Counter[str] = Counter()
    for part in text.split("+"):
        if part not in RECIPES:
            near = did_you_mean(part, RECIPES) or f"Join any of {', '.join(RECIPES)} by +, as in redacted+atdp."
            raise UsageError(f"recipe '{part}' is not known.", near)
        for stage in RECIPES[part]:
            seen[stage.name] += 1
            count = seen[stage.name]
            stages.append(stage if count == 1 else replace(stage, name=f"{stage.name}-{count}"))
    return tuple(stages)


def reads_records(stage: Train) -> bool:
    """Whether the stage depends on any record."""
    return stage.objective.demands.records


def takes_steps(stage: Train) -> bool:
    """Whether the stage trains."""
    return not isinstance(stage.objective, Interpolate)


def reads_reference(stage: Train) -> bool:
    """Whether the stage needs a reference model."""
    return stage.objective.demands.reference


def tunable(recipe: Recipe) -> bool:
    """Whether the settings of the last stage can be found on decoys: it reads them, and no stage has noise."""
    noisy = any(isinstance(stage.mechanism, DPSGD) for stage in recipe)
    return bool(recipe) and not noisy and recipe[-1].text is TextVariant.DECOY


def needs_whole_model(stage: Train) -> bool:
    """Whether the stage's loss goes by autograd, which cannot where parameters are sharded."""
    return isinstance(stage.objective, Unlearning) or stage.objective.demands.start


def last_private(recipe: Recipe) -> int:
    """The position of the stage that bare options act on: the last with noise, or the last one where none is.

    Raises:
        UsageError: The recipe has no stage.
    """
    if not recipe:
        raise UsageError("The recipe has no stage for this option to act on.", "Add one by +, as in base+atdp.")
    private = [position for position, stage in enumerate(recipe) if isinstance(stage.mechanism, DPSGD)]
    return private[-1] if private else len(recipe) - 1
