"""Baseline of machine unlearning: the likelihood of flagged tokens falls without bound."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from atdp_cli.settings import Positive, validated
from atdp_cli.training.objectives.demands import Demands

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from atdp_cli.training.clip.batches import PhysicalBatch
    from atdp_cli.training.objective import Example


@validated
class GradientDifference:
    """λ·log π(y) of a record's flagged targets y, and cross-entropy on the rest.

    Source: Liu, Liu and Stone 2022; Maini et al. 2024, TOFU.

    Attributes:
        strength: λ > 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True)
    summary: ClassVar[str] = "gradient difference"

    kind: Literal["gradient-difference"] = "gradient-difference"
    strength: Positive = 1.0

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}"

    def loss(
        self, model: "PreTrainedModel", records: "Sequence[Example]", batch: "PhysicalBatch", **_: object
    ) -> "torch.Tensor":
        """As `OwnLoss` has it."""
        from atdp_cli.training.objectives.sequences import surprise_of

        now = surprise_of(model, records, batch)
        return now.kept - self.strength * now.flagged.sum()


RECIPES = {"gradient-difference": {"gradient-difference": GradientDifference()}}
