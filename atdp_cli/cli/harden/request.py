"""From the options of `atdp harden` to the request that its job takes."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.options.shared import make_detector
from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.training.recipe import Recipe


def make_request(model: Path, options: HardenOptions) -> "HardenRequest":
    """The options as the job takes them. Those that are not given are those of --auto, or of the recipe file."""
    from atdp_cli.jobs.harden.auto import EPSILON, RECIPE, TIER
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.training.recipe_file import load_recipe

    if options.auto:
        if "recipe" in options.model_fields_set:
            raise UsageError("--auto chooses the recipe that --recipe names.", "Leave one of them out.")
        options = options.fill({"recipe": RECIPE, "target_epsilon": EPSILON, "tier": TIER})
    file = load_recipe(options.recipe)
    options = options.fill(file.run.given())
    taken_over = {name: value for name, value in options if name in HardenRequest.model_fields}
    return HardenRequest(
        **taken_over
        | {
            "model": model,
            "output": options.output or default_output(model),
            "recipe_name": file.name,
            "recipe": _with_settings(file.recipe, options),
            "detector": make_detector(options, options.data[0], recipe=file.name),
        }
    )


def sets_learning_rate(options: HardenOptions) -> bool:
    """Whether the command line sets a learning rate itself."""
    return options.learning_rate is not None or any(".learning-rate=" in text for text in options.set_)


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
