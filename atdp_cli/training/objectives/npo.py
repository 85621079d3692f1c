"""Baseline of machine unlearning: negative preference optimisation."""

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
class NPO:
    """λ·(2/β)·log(1 + (π(y)/π₀(y))^β) of a record's flagged targets y, and cross-entropy on the rest.

    π₀ is the model at the start of the stage. For β → 0 the gradient is that of gradient difference.
    Source: Zhang et al. 2024, eq. 3.

    Attributes:
        strength: λ > 0.
        beta: β > 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True, start=True)
    summary: ClassVar[str] = "NPO"

    kind: Literal["npo"] = "npo"
    strength: Positive = 1.0
    beta: Positive = 0.1

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}, β = {self.beta:g}"

    def loss(
        self,
        model: "PreTrainedModel",
        records: "Sequence[Example]",
        batch: "PhysicalBatch",
        *,
        start: "Sequence[torch.Tensor]",
        **_: object,
    ) -> "torch.Tensor":
        """As `OwnLoss` has it."""
        from torch.nn import functional

        from atdp_cli.training.objectives.sequences import surprise_of

        now = surprise_of(model, records, batch, start)
        if now.before is None:
            raise ValueError("npo needs the start of the stage")
        forgotten = 2 / self.beta * functional.softplus(-self.beta * (now.flagged - now.before))
        return now.kept + self.strength * forgotten[now.length > 0].sum()


RECIPES = {"npo": {"npo": NPO()}}
