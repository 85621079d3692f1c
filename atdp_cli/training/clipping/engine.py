"""The signature of all clipping engines, and what they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.training.objective import Example

ROUNDING_MARGIN = 2e-5
"""Records are clipped to C(1−margin) and accounted with C, which leaves room for rounding in fp32."""


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """Σ over records of g·min(1, C/‖g‖).

    Attributes:
        gradient: One tensor a trainable parameter, in the order of `trainable`.
        norms: L2 norm of each record's gradient before clipping, fp64, shape [records]; not finite where the
            record's gradient is not, and then it added nothing.
    """

    gradient: tuple[torch.Tensor, ...]
    norms: torch.Tensor


ClippingEngine = Callable[[PreTrainedModel, Sequence[Example], float], ClippedSum]
"""(model, records, clip norm C) → the clipped gradient sum and the norms."""


def trainable(model: nn.Module) -> list[torch.nn.Parameter]:
    """The parameters that training changes, in the model's order; one that layers share comes once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def summed_in(parameter: torch.nn.Parameter) -> torch.dtype:
    """The dtype of gradient sums: fp32 at least, also for parameters in half precision."""
    return torch.promote_types(parameter.dtype, torch.float32)


def zeros_of(model: nn.Module) -> tuple[torch.Tensor, ...]:
    """A gradient sum of zero, in the order of `trainable`; unsharded also where parameters are sharded."""
    return tuple(
        torch.zeros(parameter.shape, dtype=summed_in(parameter), device=parameter.device)
        for parameter in trainable(model)
    )


def clip_factors(norms: torch.Tensor, clip_norm: float) -> torch.Tensor:
    """`clip_factor` of each norm; 0 for one that is not finite. Shape and dtype of `norms`."""
    bound = clip_norm * (1 - ROUNDING_MARGIN)
    return torch.where(norms <= bound, 1.0, bound / norms).where(torch.isfinite(norms), 0.0)


def clip_factor(norm: float, clip_norm: float) -> float:
    """min(1, C(1−margin)/norm)."""
    bound = clip_norm * (1 - ROUNDING_MARGIN)
    return 1.0 if norm <= bound else bound / norm
