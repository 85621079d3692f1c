"""Baseline without training: averages the weights with those of the reference."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.settings import validated
from atdp_cli.training.objectives.demands import Demands

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@validated
class Interpolate:
    """θ ← θ_ref + β(θ − θ_ref).

    Where the reference is the model that the run starts from, β = −α negates the task vector of the stages before
    (Ilharco et al. 2023): θ ← θ_ref − α(θ − θ_ref).

    Attributes:
        beta: β in [−4, 1], how far from the reference to the model the result lies; below 0 beyond the reference.
    """

    demands: ClassVar[Demands] = Demands(records=False, noise="never", raw=True, reference=True)
    summary: ClassVar[str] = "weights interpolated"

    kind: Literal["interpolate"] = "interpolate"
    beta: Annotated[float, Field(ge=-4, le=1)] = 0.25

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"{self.summary}, β = {self.beta:g}"

    def edit(self, model: "PreTrainedModel", reference: "PreTrainedModel") -> None:
        """As `WeightEdit` has it."""
        import torch

        from atdp_cli.training.parallel.fsdp import local_shard, shard_like

        origins = dict(reference.named_parameters())
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                origin = origins[name].to(device=parameter.device, dtype=parameter.dtype)
                shard = local_shard(parameter)
                shard.copy_(torch.lerp(local_shard(shard_like(parameter, origin)), shard, self.beta))


RECIPES = {"interpolate": {"interpolate": Interpolate()}}
