"""The options of `atdp harden` that its job does not take: how a recipe is named and changed, and what is shown."""

from typing import Annotated

from pydantic import Field, PositiveFloat

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

    recipe: Annotated[
        str,
        Field(
            description="Stages, joined by +, as in redacted+atdp; --list-recipes shows them. Or a recipe file, as "
            "harden writes it beside the weights; options given here go before those in its table run."
        ),
        Option(panel=TRAINING, metavar="NAMES|FILE.toml", public=True),
    ] = "atdp"
    auto: Annotated[
        bool,
        Field(
            description="Choose the recipe and its settings: decoys drawn with frequencies of a noisy release, ε ≤ 3 "
            "unless --target-epsilon says else, starting at --reference where there is one. See docs/choosing.md."
        ),
        Option(panel=TRAINING),
    ] = False
    minutes: Annotated[
        PositiveFloat | None,
        Field(description="With --auto: take fewer epochs if training would last longer."),
        Option(panel=TRAINING),
    ] = None
    list_recipes: Annotated[
        bool,
        Field(description="Print the recipes with what each guarantees, and stop."),
        Option(panel=TRAINING),
        Eager(show_recipes),
    ] = False


class EpochOptions(Options):
    """How the last DP stage trains."""

    epochs: Annotated[int | None, Field(description="Passes over the corpus. Default: 3."), Option(panel=TRAINING)] = (
        None
    )
    learning_rate: Annotated[float | None, Field(description="η. Default: 5e-4."), Option(panel=TRAINING)] = None
    batch_size: Annotated[
        int | None,
        Field(description="B, expected records a step. Default: min(256, ⌈N/4⌉)."),
        Option(panel=TRAINING),
    ] = None
    weight: Annotated[
        str | None,
        Field(
            description="w of tokens without a flag: a number, record (from the record's own share of flagged tokens) "
            "or released (from the corpus' share, released with noise). Default: 0.2."
        ),
        Option(panel=TRAINING, public=True),
    ] = None
    target_share: Annotated[
        float | None,
        Field(
            description="Share of the weight that flagged tokens should carry, for record and released. Default: 0.5."
        ),
        Option(panel=TRAINING),
    ] = None


class SettingOptions(Options):
    """Settings of single stages."""

    set_: Annotated[
        tuple[str, ...],
        Field(description="An option of one stage; without it options act on the last DP stage. Repeatable."),
        Option(panel=TRAINING, flags=("--set",), metavar="STAGE.KEY=VALUE", public=True),
    ] = ()


class NoiseOptions(Options):
    """The noise of the last DP stage."""

    noise_multiplier: Annotated[
        float | None,
        Field(description="σ₀: noise over clip norm in the first epoch. Default: 1."),
        Option(panel=PRIVACY),
    ] = None


class ClippingOptions(Options):
    """What is clipped, and how the noise of the last DP stage grows."""

    clip_norm: Annotated[
        float | None,
        Field(description="C: largest norm of a record's gradient. Default: 0.1."),
        Option(panel=PRIVACY),
    ] = None
    escalation: Annotated[
        float | None, Field(description="γ: rise of σ an epoch. Default: 1.2."), Option(panel=PRIVACY)
    ] = None
    jitter: Annotated[
        str | None,
        Field(description="Range of the rise's random factor. Default: 0.9,1.1."),
        Option(panel=PRIVACY, metavar="LOW,HIGH", public=True),
    ] = None
    sigma_max: Annotated[
        float | None,
        Field(description="Ceiling of σ; above it σ returns to σ₀. Default: 4·σ₀."),
        Option(panel=PRIVACY),
    ] = None


class DryRunOptions(Options):
    """Whether it is run."""

    dry_run: Annotated[
        bool, Field(description="Print the plan and its ε, and stop."), Option(panel=OUTPUT, fingerprint=False)
    ] = False


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
