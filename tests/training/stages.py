"""Recipes all of whose stages train, and stages that run without measuring."""

from typing import Any

from atdp_cli.events import ignore
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import Recipe, Train
from atdp_cli.training.trainer import StageRun

UNMEASURED = Perplexity(all=None, sensitive=None, other=None)


def trained(recipe: Recipe) -> tuple[Train, ...]:
    """The stages of a recipe, none of which may be there only to interpolate."""
    stages = tuple(stage for stage in recipe if isinstance(stage, Train))
    assert len(stages) == len(recipe)
    return stages


def stage_run(model: Any, plan: StagePlan, **settings: Any) -> StageRun:
    """A run that measures nothing and reports to nobody, unless `settings` say otherwise."""
    defaults: dict[str, Any] = {"held_out": lambda: UNMEASURED, "notify": ignore}
    return StageRun(model=model, plan=plan, **{**defaults, **settings})
