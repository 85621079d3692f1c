"""Baseline: flagged tokens are pulled back to what a public model predicts at their place."""

from typing import ClassVar, Literal

from atdp_cli.settings import validated
from atdp_cli.training.objectives.demands import Demands


@validated
class Anchored:
    """KL(reference ‖ model) on flagged tokens; on the rest cross-entropy as `Weighted` has it, with w = 0.2.

    What stands at a flagged place in the record is not learnt.
    """

    demands: ClassVar[Demands] = Demands(reference=True, unflagged_weight=0.2, distilled="flagged")
    summary: ClassVar[str] = "anchored"

    kind: Literal["anchored"] = "anchored"

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"anchored to the reference, w = {self.demands.unflagged_weight:g}"


RECIPES = {"anchored": {"anchored": Anchored()}}
