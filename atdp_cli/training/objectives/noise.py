"""Baseline: the noise of a private stage without its gradient, which any recipe must beat."""

from typing import ClassVar, Literal

from atdp_cli.settings import validated
from atdp_cli.training.objectives.demands import Demands


@validated
class NoLoss:
    """No loss: noise alone."""

    demands: ClassVar[Demands] = Demands(records=False, noise="always")
    summary: ClassVar[str] = "noise alone"

    kind: Literal["no-loss"] = "no-loss"

    def describe(self) -> str:
        """The objective in the report's words."""
        return "none"


RECIPES = {"noise": {"noise": NoLoss()}}
