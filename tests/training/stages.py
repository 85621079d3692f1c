"""Recipes all of whose stages train."""

from atdp_cli.training.recipe import Recipe, Train


def trained(recipe: Recipe) -> tuple[Train, ...]:
    """The stages of a recipe, none of which may be there only to interpolate."""
    found = tuple(stage for stage in recipe if isinstance(stage, Train))
    assert len(found) == len(recipe)
    return found
