"""The text of recipe files, byte for byte: it is part of the fingerprint by which an interrupted run is resumed."""

from pathlib import Path

import pytest

from atdp_cli.text.detection.spans import Tier
from atdp_cli.training.options import RunOptions
from atdp_cli.training.recipe import parse_recipe
from atdp_cli.training.recipe_file import RecipeFile, read_recipe, recipe_text
from atdp_cli.training.settings import apply_settings, parse_setting

FOLDER = Path(__file__).with_name("recipes")

WRITTEN: dict[str, tuple[str, tuple[str, ...], RunOptions]] = {
    "released": (
        "redacted+atdp+fitted-decoys",
        (
            "redacted.optimizer=sgd",
            "redacted.batch-size=32",
            "atdp.weight=released",
            "atdp.sigma-max=2.5",
            "atdp.optimizer=adambc",
        ),
        RunOptions(),
    ),
    "references": ("anchored+noise+interpolate", (), RunOptions()),
    "options": (
        "dp-sgd",
        (
            "dp-sgd.batch-size=64",
            r'dp-sgd.layers=h\.4\.|"ln_f"',
            "dp-sgd.annealing=linear",
            "dp-sgd.noise-multiplier=3",
            "dp-sgd.towards=start",
        ),
        RunOptions(
            tier=Tier.LOW_ENTITY,
            unit="line",
            max_windows=3,
            jitter_seed=1,
            lora_rank=8,
            delta=1e-6,
        ),
    ),
}
"""The recipe, its settings and the options beside it, by the file that the version of 22 November 2026 wrote."""


@pytest.mark.parametrize("name", WRITTEN)
def test_the_text_is_that_of_earlier_versions(name: str) -> None:
    recipe, settings, run = WRITTEN[name]
    stages = parse_recipe(recipe)
    changed = apply_settings(stages, [parse_setting(stages, text) for text in settings])
    file = RecipeFile(name=recipe, recipe=changed, run=run)
    path = FOLDER / f"{name}.toml"
    assert recipe_text(file).encode() == path.read_bytes()
    assert read_recipe(path) == file
