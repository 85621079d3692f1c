"""From the options of `atdp harden` to the request that its job takes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.training.recipe import Recipe


def choose_recipe(options: HardenOptions) -> HardenOptions:
    """The options with a recipe. Where none is given it is the default, with its tier.

    Raises:
        UsageError: Options do not go with the recipe.
    """
    from atdp_cli.jobs.harden.auto import RECIPE, TIER, missing_options

    if options.recipe is not None:
        return options
    for name in missing_options():
        if getattr(options, name.replace("-", "_")) is not None:
            raise UsageError(
                f"--{name} needs a DP stage, and {RECIPE}, the default recipe, has none.",
                "Add --recipe atdp, or another with a DP stage.",
            )
    return options.fill({"recipe": RECIPE, "tier": TIER})


def make_request(model: Path, options: HardenOptions) -> "HardenRequest":
    """The options as the job takes them. Those that are not given are those of the recipe file.

    Args:
        options: With a recipe.
    """
    from atdp_cli.jobs.detector import make_detector
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.text.detection.settings import read_detector
    from atdp_cli.training.recipe_file import load_recipe

    if options.recipe is None:
        raise ValueError("a recipe is to be chosen first")
    file = load_recipe(options.recipe)
    given = file.run.given()
    options, settings = options.fill(given), read_detector(options.detector).fill(given)
    taken_over = {name: value for name, value in options if name in HardenRequest.model_fields}
    return HardenRequest(
        **taken_over
        | {
            "model": model,
            "output": options.output or default_output(model),
            "recipe_name": file.name,
            "recipe": _with_settings(file.recipe, options),
            "detector": make_detector(options, options.data[0], recipe=file.name, settings=settings),
        }
    )


def sets_learning_rate(options: HardenOptions, stage: str) -> bool:
    """Whether the command line sets the learning rate of the stage, which is the one that bare options act on."""
    set_ = any(text.replace("_", "-").startswith(f"{stage}.learning-rate=".replace("_", "-")) for text in options.set_)
    return options.learning_rate is not None or set_


def sets_noise(options: HardenOptions) -> bool:
    """Whether the command line chooses the noise of the release, or the ε that it is to have."""
    return options.target_epsilon is not None or _sets(options, "release-noise")


def _sets(options: HardenOptions, name: str) -> bool:
    """Whether --set changes an option of this name."""
    return any(f".{name}=" in text.replace("_", "-") for text in options.set_)


def _with_settings(recipe: "Recipe", options: HardenOptions) -> "Recipe":
    """The recipe with the options of its stages applied."""
    from atdp_cli.training.settings import apply_settings, parse_setting, stage_options, stage_setting

    if options.target_epsilon is not None and options.noise_multiplier is not None:
        raise UsageError("--target-epsilon chooses the noise that --noise-multiplier sets.", "Leave one of them out.")
    settings = [
        stage_setting(recipe, name, value)
        for name in stage_options()
        if (value := getattr(options, name.replace("-", "_"))) is not None
    ]
    settings += [parse_setting(recipe, text) for text in options.set_]
    return apply_settings(recipe, settings)


def default_output(model: Path) -> Path:
    """MODEL-hardened, beside the model; also for `.` and for a link, which keeps its own name."""
    absolute = Path(os.path.abspath(model))  # noqa: PTH100 - resolve() would follow the link
    return (
        absolute.with_name(f"{absolute.name}-hardened")
        if model.name in ("", "..")
        else model.with_name(f"{model.name}-hardened")
    )
