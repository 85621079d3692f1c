"""What an objective may require of its stage and run, so that no other code has to know it.

An objective is a frozen dataclass of settings with a `kind`, its `demands`, a `summary` in a few words and `describe()`
in the report's words. Its loss is a weighted sum over tokens; one with a loss of its own is an `OwnLoss`, and one that
trains nothing a `WeightEdit`. No torch here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from atdp_cli.training.clip.batches import PhysicalBatch
    from atdp_cli.training.objective import Example


@dataclass(frozen=True, kw_only=True)
class Demands:
    """What an objective asks for, whatever its settings are.

    Attributes:
        records: Whether any record has a say in the stage.
        flags: Whether flagged tokens count otherwise than others.
        noise: Whether the stage may have noise, or must.
        raw: Whether the stage must read raw text.
        reference: Whether a public model is read.
        start: Whether the loss depends on the model as it was at the stage's start.
        function_weight, unflagged_weight: Of function words and of other tokens without a flag; flagged tokens have 1.
        distilled: Which tokens learn a model's distribution: flagged ones the reference's, or others the start's.
    """

    records: bool = True
    flags: bool = True
    noise: Literal["any", "never", "always"] = "any"
    raw: bool = False
    reference: bool = False
    start: bool = False
    function_weight: float = 1.0
    unflagged_weight: float = 1.0
    distilled: Literal["flagged", "others"] | None = None


@runtime_checkable
class OwnLoss(Protocol):
    """An objective whose loss is no sum over tokens. It goes by autograd, without clipping, on whole models."""

    def loss(
        self,
        model: "PreTrainedModel",
        records: "Sequence[Example]",
        batch: "PhysicalBatch",
        *,
        start: "Sequence[torch.Tensor]",
        seed: int,
    ) -> "torch.Tensor":
        """The sum of the losses of a batch of these records.

        Args:
            start: The trainable parameters at the start of the stage; empty where the loss does not need them.
            seed: Of the stage, the same when it is resumed.
        """
        ...


@runtime_checkable
class WeightEdit(Protocol):
    """An objective that takes no step: it changes the weights once."""

    def edit(self, model: "PreTrainedModel", reference: "PreTrainedModel") -> None:
        """Change the model in place; both have parameters of the same names and shapes."""
        ...
