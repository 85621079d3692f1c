"""The options of `atdp harden` that its job does not take: how a recipe is named and changed, and what is shown."""

from typing import Annotated, Any

from atdp_cli.cli.harden.list_recipes import show_recipes
from atdp_cli.cli.options.generate import Eager, stage_group
from atdp_cli.cli.options.shared import ProgressOptions
from atdp_cli.model.options import DeviceOptions, ThreadOptions
from atdp_cli.options import Option, Options
from atdp_cli.text.options import (
    OUTPUT,
    DetectionOptions,
    ExtraSpansOptions,
    RecordOptions,
    ReplacingOptions,
    SpanFileOptions,
)
from atdp_cli.training.options import (
    TRAINING,
    AcceptOptions,
    AdapterOptions,
    BudgetOptions,
    ChatOptions,
    CorpusOptions,
    DataOptions,
    DeltaOptions,
    EngineOptions,
    PriorOptions,
    ReferenceOptions,
    ResumingOptions,
    ReviewEpochOptions,
    SeedOptions,
    TuneOptions,
    WritingOptions,
)
from atdp_cli.training.recipe import RECIPES
from atdp_cli.training.settings import stage_options


class RecipeOptions(Options):
    """The recipe."""

    recipe: Annotated[
        str | None,
        Option(TRAINING, main=True, metavar="NAMES|FILE.toml", words=lambda: RECIPES, joined="+", public=True),
    ] = None
    """Stages, joined by +, as in redacted+atdp; --list-recipes shows them. Or a recipe file, as harden writes it;
    options given here override those in its table run. Default: fitted-decoys, ε ≤ 3 unless --target-epsilon says
    else, starting at --reference where there is one. See docs/choosing.md."""

    list_recipes: Annotated[bool, Option(TRAINING), Eager(show_recipes)] = False
    """Print the recipes with what each guarantees, and stop."""


class SettingOptions(Options):
    """Settings of single stages."""

    set_: Annotated[tuple[str, ...], Option(TRAINING, flags=("--set",), metavar="STAGE.KEY=VALUE", public=True)] = ()
    """An option of one stage; without it options act on the last DP stage. Repeatable."""


class DryRunOptions(Options):
    """Whether it is run."""

    dry_run: Annotated[bool, Option(OUTPUT, main=True, fingerprint=False)] = False
    """Print the plan and its ε, and stop."""


# The recipe declares them. This is the order in which `--help` has them.
_OF_TRAINING = ("epochs", "learning-rate", "batch-size", "weight", "target-share")
_OF_NOISE = ("noise-multiplier",)
_Training: Any = stage_group(*_OF_TRAINING)
_Noise: Any = stage_group(*_OF_NOISE)
_Others: Any = stage_group(*(name for name in stage_options() if name not in _OF_TRAINING + _OF_NOISE))


class HardenOptions(
    CorpusOptions,
    RecordOptions,
    DataOptions,
    ChatOptions,
    ReviewEpochOptions,
    SpanFileOptions,
    ExtraSpansOptions,
    RecipeOptions,
    _Training,  # type: ignore[misc]  # its fields are known when it runs
    AdapterOptions,
    SettingOptions,
    TuneOptions,
    ReferenceOptions,
    _Noise,  # type: ignore[misc]
    BudgetOptions,
    AcceptOptions,
    DeltaOptions,
    _Others,  # type: ignore[misc]
    PriorOptions,
    DetectionOptions,
    WritingOptions,
    EngineOptions,
    DeviceOptions,
    DryRunOptions,
    ReplacingOptions,
    ResumingOptions,
    ThreadOptions,
    SeedOptions,
    ProgressOptions,
):
    """All of them, in the order in which `--help` has them."""
