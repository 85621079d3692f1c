"""The options of `atdp harden` that its job does not take: how a recipe is named and changed, and what is shown."""

from typing import Annotated

from pydantic import PositiveFloat

from atdp_cli.cli.harden.list_recipes import show_recipes
from atdp_cli.cli.options.generate import Eager
from atdp_cli.cli.options.shared import ProgressOptions, ThreadOptions
from atdp_cli.options import Option, Options
from atdp_cli.text.options import OUTPUT, DetectionOptions, RecordOptions, ReplacingOptions
from atdp_cli.training.options import (
    PRIVACY,
    TRAINING,
    AdapterOptions,
    BudgetOptions,
    CorpusOptions,
    DataOptions,
    EngineOptions,
    MaskOptions,
    PriorOptions,
    ReferenceOptions,
    ResumingOptions,
    SeedOptions,
    WritingOptions,
)


class RecipeOptions(Options):
    """The recipe."""

    recipe: Annotated[str, Option(TRAINING, metavar="NAMES|FILE.toml", public=True)] = "atdp"
    """Stages, joined by +, as in redacted+atdp; --list-recipes shows them. Or a recipe file, as harden writes it
    beside the weights; options given here go before those in its table run."""

    auto: Annotated[bool, Option(TRAINING)] = False
    """Choose the recipe and its settings: decoys drawn with frequencies of a noisy release, ε ≤ 3 unless
    --target-epsilon says else, starting at --reference where there is one. See docs/choosing.md."""

    minutes: Annotated[PositiveFloat | None, Option(TRAINING)] = None
    """With --auto: take fewer epochs if training would last longer."""

    list_recipes: Annotated[bool, Option(TRAINING), Eager(show_recipes)] = False
    """Print the recipes with what each guarantees, and stop."""


class EpochOptions(Options):
    """How the last DP stage trains."""

    epochs: Annotated[int | None, Option(TRAINING)] = None
    """Passes over the corpus. Default: 3."""

    learning_rate: Annotated[float | None, Option(TRAINING)] = None
    """η. Default: 5e-4."""

    batch_size: Annotated[int | None, Option(TRAINING)] = None
    """B, expected records a step. Default: min(256, ⌈N/4⌉)."""

    weight: Annotated[str | None, Option(TRAINING, public=True)] = None
    """w of tokens without a flag: a number, record (from the record's own share of flagged tokens) or released (from
    the corpus' share, released with noise). Default: 0.2."""

    target_share: Annotated[float | None, Option(TRAINING)] = None
    """Share of the weight that flagged tokens should carry, for record and released. Default: 0.5."""


class SettingOptions(Options):
    """Settings of single stages."""

    set_: Annotated[tuple[str, ...], Option(TRAINING, flags=("--set",), metavar="STAGE.KEY=VALUE", public=True)] = ()
    """An option of one stage; without it options act on the last DP stage. Repeatable."""


class NoiseOptions(Options):
    """The noise of the last DP stage."""

    noise_multiplier: Annotated[float | None, Option(PRIVACY)] = None
    """σ₀: noise over clip norm in the first epoch. Default: 1."""


class ClippingOptions(Options):
    """What is clipped, and how the noise of the last DP stage grows."""

    clip_norm: Annotated[float | None, Option(PRIVACY)] = None
    """C: largest norm of a record's gradient. Default: 0.1."""

    escalation: Annotated[float | None, Option(PRIVACY)] = None
    """γ: rise of σ an epoch. Default: 1.2."""

    jitter: Annotated[str | None, Option(PRIVACY, metavar="LOW,HIGH", public=True)] = None
    """Range of the rise's random factor. Default: 0.9,1.1."""

    sigma_max: Annotated[float | None, Option(PRIVACY)] = None
    """Ceiling of σ; above it σ returns to σ₀. Default: 4·σ₀."""


class DryRunOptions(Options):
    """Whether it is run."""

    dry_run: Annotated[bool, Option(OUTPUT, fingerprint=False)] = False
    """Print the plan and its ε, and stop."""


class HardenOptions(
    CorpusOptions,
    RecordOptions,
    DataOptions,
    MaskOptions,
    RecipeOptions,
    EpochOptions,
    AdapterOptions,
    SettingOptions,
    ReferenceOptions,
    NoiseOptions,
    BudgetOptions,
    ClippingOptions,
    PriorOptions,
    DetectionOptions,
    WritingOptions,
    EngineOptions,
    DryRunOptions,
    ReplacingOptions,
    ResumingOptions,
    ThreadOptions,
    SeedOptions,
    ProgressOptions,
):
    """All of them, in the order in which `--help` has them."""
