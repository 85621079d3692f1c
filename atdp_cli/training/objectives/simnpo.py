"""Baseline of machine unlearning: negative preference optimisation without a reference."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.settings import Positive, validated
from atdp_cli.training.objectives.demands import Demands

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from atdp_cli.training.clip.batches import PhysicalBatch
    from atdp_cli.training.objective import Example


@validated
class SimNPO:
    """−λ·(2/β)·log σ(−(β/|y|)·log π(y) − γ) of a record's flagged targets y, and cross-entropy on the rest.

    Its gradient is one of a mean over y, the others' one of a sum: λ of the size of |y| weighs a token alike.
    Source: Fan et al. 2024.

    Attributes:
        strength: λ > 0.
        beta: β > 0.
        margin: γ ≥ 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True)
    summary: ClassVar[str] = "SimNPO"

    kind: Literal["simnpo"] = "simnpo"
    strength: Positive = 1.0
    beta: Positive = 2.5
    margin: Annotated[float, Field(ge=0)] = 0.0

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}, β = {self.beta:g}, γ = {self.margin:g}"

    def loss(
        self, model: "PreTrainedModel", records: "Sequence[Example]", batch: "PhysicalBatch", **_: object
    ) -> "torch.Tensor":
        """As `OwnLoss` has it."""
        from torch.nn import functional

        from atdp_cli.training.objectives.sequences import surprise_of

        now = surprise_of(model, records, batch)
        mean = now.flagged / now.length.clamp(min=1)
        forgotten = -2 / self.beta * functional.logsigmoid(self.beta * mean - self.margin)
        return now.kept + self.strength * forgotten[now.length > 0].sum()


RECIPES = {"simnpo": {"simnpo": SimNPO()}}
