"""All objectives. To add one, write a file here as `Demands` says and a line in the two lists. Never imports torch."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from atdp_cli.training.objectives import anchored, gradient_difference, interpolate, negated, noise, npo, rmu, simnpo
from atdp_cli.training.objectives.kinds import Distilled, Uniform, Weighted

Objective = Annotated[
    Uniform
    | Weighted
    | Distilled
    | anchored.Anchored
    | noise.NoLoss
    | interpolate.Interpolate
    | gradient_difference.GradientDifference
    | npo.NPO
    | simnpo.SimNPO
    | rmu.RMU
    | negated.FlaggedOnly,
    Field(discriminator="kind"),
]

BASELINES: Mapping[str, Mapping[str, Objective]] = {
    **anchored.RECIPES,
    **noise.RECIPES,
    **interpolate.RECIPES,
    **gradient_difference.RECIPES,
    **npo.RECIPES,
    **simnpo.RECIPES,
    **rmu.RECIPES,
    **negated.RECIPES,
}
"""The recipes that measured systems are compared with: each a stage's name with its objective, in order."""
