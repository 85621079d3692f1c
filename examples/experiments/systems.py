"""The systems that a table compares: each a chain of steps that begins at the base checkpoint."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from atdp_cli.corpus.spans import Tier
from atdp_cli.errors import UsageError
from atdp_cli.hardening.request import EPSILON, RECIPE
from atdp_cli.training.recipe import DPSGD, RECIPES, Recipe, parse_recipe
from atdp_cli.training.search import WARMUP
from atdp_cli.training.stage_options import apply_settings, parse_setting


@dataclass(frozen=True, kw_only=True)
class Step:
    """One run of `harden`, from where the step before it ended.

    Attributes:
        part: A recipe of one stage, or `base`, which has none.
        settings: `STAGE.option=value`, as `--set` takes them.
        tier: Where it is not that of the experiment.
        epsilon: σ₀ is chosen so that the private stages so far spend at most this; None takes it as it is set.
        lora_rank: Of an adapter, trained in place of the whole model and then merged.
        by_default: Whether the learning rate and --tune are as `harden` has them without --recipe.
    """

    part: str
    settings: tuple[str, ...] = ()
    tier: Tier | None = None
    epsilon: float | None = None
    lora_rank: int | None = None
    by_default: bool = False

    @property
    def recipe(self) -> Recipe:
        """The recipe with its settings.

        Raises:
            UsageError: The part or a setting is not known.
        """
        stages = parse_recipe(self.part)
        return apply_settings(stages, [parse_setting(stages, text) for text in self.settings])

    @property
    def slug(self) -> str:
        """A name for its folder: `atdp`, or `atdp@` and six hex digits that stand for its settings."""
        beside = [
            f"{name}={value}"
            for name in ("tier", "epsilon", "lora_rank", "by_default")
            if (value := getattr(self, name))
        ]
        settings = "\n".join((*self.settings, *beside))
        return f"{self.part}@{hashlib.sha256(settings.encode()).hexdigest()[:6]}" if settings else self.part


@dataclass(frozen=True, kw_only=True)
class System:
    """A row of the table.

    Attributes:
        name: As the table shows it.
        steps: At least one. Systems with equal first steps share their runs.
    """

    name: str
    steps: tuple[Step, ...]


def slug_of(steps: Sequence[Step]) -> str:
    """A name for the folder of what these steps make."""
    return "+".join(step.slug for step in steps)


_STAGES = {stage.name for recipe in RECIPES.values() for stage in recipe}

CONTROLS = ("no-dp+noise", "no-dp+interpolate", "no-dp+anchored", "redacted+anchored")
"""Those that the paper's table lacks."""

DEFAULT = "default"
"""What `harden` runs without --recipe, as a part of a row."""


def default_step(settings: Sequence[str] = (), epsilon: float | None = EPSILON) -> Step:
    """The run of `harden` without --recipe, with these settings."""
    return Step(part=RECIPE, settings=tuple(settings), epsilon=epsilon, by_default=True)


def tuned_no_dp(rate: str) -> Step:
    """Training without protection that warms up and anneals as the default does, at an η that was searched for it."""
    settings = (f"learning-rate={rate}", "annealing=linear", f"warmup={WARMUP}")
    return Step(part="no-dp", settings=tuple(f"no-dp.{setting}" for setting in settings))


def system_of(recipe: str, settings: Sequence[str] = (), lora_rank: int | None = None) -> System:
    """`jft+atdp` → its steps, each with those of the settings that name its stage.

    Args:
        lora_rank: Of the adapters of stages with noise.

    Raises:
        UsageError: A part is no recipe.
    """
    parts = [part for name in recipe.split("+") for part in ("redacted+dp-sgd" if name == "jft" else name).split("+")]
    steps = tuple(_step(part, settings, lora_rank) for part in parts)
    for text in settings:
        if text.partition(".")[0] not in _STAGES:
            raise UsageError(f"--set {text} names no stage of any system.", "Write --set STAGE.option=value.")
    for step in steps:
        _ = step.recipe
    return System(name=recipe, steps=steps)


def _step(part: str, settings: Sequence[str], lora_rank: int | None) -> Step:
    name = RECIPE if part == DEFAULT else part
    own = [text for text in settings if text.startswith(f"{name}.")]
    if part == DEFAULT:
        return default_step(own)
    with_noise = any(isinstance(stage.mechanism, DPSGD) for stage in parse_recipe(part))
    return Step(part=part, settings=tuple(own), lora_rank=lora_rank if with_noise else None)


def varied(system: System, name: str, *, settings: Sequence[str] = (), tier: Tier | None = None) -> System:
    """The system under another name with more settings for its last step, and another tier for all of its steps."""
    last = replace(system.steps[-1], settings=(*system.steps[-1].settings, *settings))
    steps = tuple(replace(step, tier=tier) for step in (*system.steps[:-1], last))
    return System(name=name, steps=steps)


Ablation = Callable[[Sequence[str]], tuple[System, ...]]


def _tiers(settings: Sequence[str]) -> tuple[System, ...]:
    return tuple(
        varied(system_of(recipe, settings), f"{recipe}, {tier.value}", tier=tier)
        for tier in Tier
        for recipe in ("no-dp+atdp", "redacted", "redacted+atdp")
    )


def _of_atdp(label: str, choices: Mapping[str, Sequence[str]]) -> Ablation:
    """`no-dp+atdp` with these settings of its last stage, by what the table calls them."""

    def made(settings: Sequence[str]) -> tuple[System, ...]:
        base = system_of("no-dp+atdp", settings)
        return tuple(
            varied(base, f"no-dp+atdp, {label} {name}", settings=[f"atdp.{option}" for option in options])
            for name, options in choices.items()
        )

    return made


def _schedules(settings: Sequence[str]) -> tuple[System, ...]:
    """Rise and reset against a constant σ, under AdamW, which rescales the noise, and under SGD, which does not."""
    base = system_of("no-dp+atdp", settings)
    sgd = ("atdp.optimizer=sgd", "atdp.learning-rate=0.5")
    constant = ("atdp.sigma-growth=1", "atdp.jitter=1,1")
    return tuple(
        varied(base, f"no-dp+atdp, {name}", settings=options)
        for name, options in {
            "rise and reset, AdamW": (),
            "constant, AdamW": constant,
            "rise and reset, SGD": sgd,
            "constant, SGD": (*sgd, *constant),
        }.items()
    )


def _costs(settings: Sequence[str]) -> tuple[System, ...]:
    """Exposure over seconds: `jft` up to 30 epochs of its private stage, post-hoc stages up to 3."""
    private = {"jft": (1, 3, 10, 30), "no-dp+atdp": (1, 3), "redacted+atdp": (1, 3), "redacted+anchored": (1, 3)}
    return tuple(
        varied(system, f"{recipe}, {epochs} epochs", settings=(f"{system.steps[-1].part}.epochs={epochs}",))
        for recipe, counts in private.items()
        for system in (system_of(recipe, settings),)
        for epochs in counts
    )


ABLATIONS: Mapping[str, Ablation] = {
    "tiers": _tiers,
    "weight": _of_atdp(
        "w =",
        {
            **{weight: (f"unflagged-weight={weight}",) for weight in ("0", "0.05", "0.2", "0.5", "1")},
            "record": ("unflagged-weight=record",),
        },
    ),
    "noise": _of_atdp("σ₀ =", {sigma: (f"noise-multiplier={sigma}",) for sigma in ("0.5", "1", "2", "4", "16")}),
    "schedule": _schedules,
    "optimizer": _of_atdp(
        "",
        {
            "AdamW, η = 5e-4": (),
            **{f"SGD, η = {rate}": ("optimizer=sgd", f"learning-rate={rate}") for rate in ("0.1", "0.5", "2")},
        },
    ),
    "cost": _costs,
}
"""Experiments beside the table, by the name that --ablation takes."""
