"""Baseline of machine unlearning: the hidden states of flagged tokens are steered to a random vector."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.errors import UsageError
from atdp_cli.settings import Positive, validated
from atdp_cli.training.objectives.demands import Demands

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from atdp_cli.training.clip.batches import PhysicalBatch
    from atdp_cli.training.objective import Example


@validated
class RMU:
    """λ·(mean squared distance of flagged tokens' states behind layer ℓ to c·u), for the rest α·(that to the start).

    The state of a token is that from which it is predicted. Source: Li et al. 2024, WMDP.

    Attributes:
        strength: λ > 0.
        layer: ℓ, counted from 1; None for the middle one.
        steering: c > 0, the length of the control vector; the paper's for Zephyr 7B. States of other models have other
            lengths, and c has to go with them.
        retain: α ≥ 0. The paper's 1200 is for forget and retain texts of different subjects.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True, start=True)
    summary: ClassVar[str] = "RMU"

    kind: Literal["rmu"] = "rmu"
    strength: Positive = 1.0
    layer: Annotated[int, Field(ge=1)] | None = None
    steering: Positive = 6.5
    retain: Annotated[float, Field(ge=0)] = 1.0

    def describe(self) -> str:
        """The objective in the report's words."""
        layer = "the middle one" if self.layer is None else str(self.layer)
        settings = f"λ = {self.strength:g}, c = {self.steering:g}, α = {self.retain:g}, layer {layer}"
        return f"unlearning by {self.summary}, {settings}"

    def loss(
        self,
        model: "PreTrainedModel",
        records: "Sequence[Example]",
        batch: "PhysicalBatch",
        *,
        start: "Sequence[torch.Tensor]",
        seed: int,
    ) -> "torch.Tensor":
        """As `OwnLoss` has it.

        Raises:
            UsageError: The model has no such layer.
        """
        import torch

        from atdp_cli.training.objectives.sequences import targets_of
        from atdp_cli.training.trainable import at_start

        targets, layer = targets_of(records, batch, model.device), self.steered_layer(model)
        with torch.no_grad(), at_start(model, start):
            before = _states(model, batch, layer)
        states = _states(model, batch, layer)
        control = self.control(states.shape[-1], seed).to(states)
        to_control, to_start = ((states - goal).square().mean(-1) for goal in (control, before))
        forgotten, kept = (to_control * targets.forget).sum(), (to_start * targets.retain).sum()
        return self.strength * forgotten + self.retain * kept

    def control(self, size: int, seed: int) -> "torch.Tensor":
        """c·u, shape [size]. As in the paper's code, each coordinate is uniform in [0, 1) before it is scaled."""
        import torch

        drawn = torch.rand(size, generator=torch.Generator().manual_seed(seed))
        return self.steering * torch.nn.functional.normalize(drawn, dim=0)

    def steered_layer(self, model: "PreTrainedModel") -> int:
        """ℓ, counted from 1.

        Raises:
            UsageError: The model has no such layer.
        """
        layers = int(model.config.get_text_config().num_hidden_layers)
        layer = max(1, layers // 2) if self.layer is None else self.layer
        if layer > layers:
            raise UsageError(f"layer is {layer}; the model has {layers}.", f"Choose a layer from 1 to {layers}.")
        return layer


def _states(model: "PreTrainedModel", batch: "PhysicalBatch", layer: int) -> "torch.Tensor":
    """The states from which tokens are predicted, in fp32 or better, shape [windows, T − 1, d]."""
    from atdp_cli.model.forward import hidden_states

    states = hidden_states(model, batch, layer)[:, :-1]
    return states if states.dtype.itemsize >= 4 else states.float()


RECIPES = {"rmu": {"rmu": RMU()}}
