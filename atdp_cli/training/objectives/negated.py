"""Baseline: a task vector of the flagged tokens, negated (Ilharco et al. 2023)."""

from typing import ClassVar, Literal

from atdp_cli.settings import validated
from atdp_cli.training.objectives.demands import Demands
from atdp_cli.training.objectives.interpolate import Interpolate


@validated
class FlaggedOnly:
    """Cross-entropy on flagged tokens alone, each with weight 1: what a task vector of them is trained on."""

    demands: ClassVar[Demands] = Demands(noise="never", function_weight=0.0, unflagged_weight=0.0)
    summary: ClassVar[str] = "flagged tokens alone"

    kind: Literal["flagged-only"] = "flagged-only"

    def describe(self) -> str:
        """The objective in the report's words."""
        return self.summary


RECIPES: dict[str, dict[str, FlaggedOnly | Interpolate]] = {
    "negated": {"forget": FlaggedOnly(), "negated": Interpolate(beta=-1.0)}
}
