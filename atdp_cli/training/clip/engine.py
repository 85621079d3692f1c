"""The signature of all clipping engines, and what they share: clip factors and sensitivity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.training.examples import Example

ROUNDING_MARGIN = 2e-5
"""Records are clipped to C(1−margin) and accounted with C, which leaves room for the rounding of a record's own norm.

What rounding the sum over records adds is in `sensitivity`.
"""

MAX_CANCELLATION = ROUNDING_MARGIN * 2**24
"""κ ≈ 336: the norms of the terms of a gradient that is not formed add up to at most κ times the gradient's."""

MAX_TERMS = 1 << 16
"""The most positions of a batch, and of a record whose gradient is not formed."""

ADDED_IN_FP32 = 32
"""The most records whose gradients a GPU adds in fp32 before their sum is added to the total in fp64."""

ADDED_AT_ONCE = 1 << 16
"""Numbers of a gradient that are added at a time, so that their conversion to fp64 stays in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """Σ over records of g·min(1, C/‖g‖).

    Attributes:
        gradient: One tensor a trainable parameter, in the order of `trainable`.
        norms: L2 norm of each record's gradient before clipping, fp64, shape [records]; not finite where the
            record's gradient is not, and then it added nothing.
        batch_effect: η: by at most ηC a record adds something else when it is computed beside others, or its adding up
            in fp32 rounds.
        engine: The name of the engine that made it; empty for one without a name.
    """

    gradient: tuple[torch.Tensor, ...]
    norms: torch.Tensor
    batch_effect: float = 0.0
    engine: str = ""


ClippingEngine = Callable[[PreTrainedModel, Sequence[Example], float], ClippedSum]
"""(model, records, clip norm C) → the clipped gradient sum and the norms."""


def trainable(model: nn.Module) -> list[torch.nn.Parameter]:
    """The parameters that training changes, in the model's order; one that layers share comes once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def zeros_of(model: nn.Module, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    """A gradient sum of zero, in the order of `trainable`; unsharded also where parameters are sharded."""
    return tuple(
        torch.zeros(parameter.shape, dtype=torch.promote_types(parameter.dtype, dtype), device=parameter.device)
        for parameter in trainable(model)
    )


@torch.no_grad()
def add_scaled(total: torch.Tensor, *scaled: tuple[torch.Tensor, float]) -> None:
    """total += Σ factor·gradient over the pairs (gradient, factor), in the dtype of `total`; all contiguous.

    Reading and writing the total takes most of the time, so on a CPU two records at a time cost less than each by
    itself. Elsewhere an addition converts as it goes.
    """
    if total.device.type != "cpu":
        for gradient, factor in scaled:
            total.add_(gradient, alpha=factor)
        return
    gradients = [torch.split(gradient.reshape(-1), ADDED_AT_ONCE) for gradient, _ in scaled]
    factors = [factor for _, factor in scaled]
    for part, *parts in zip(torch.split(total.view(-1), ADDED_AT_ONCE), *gradients, strict=True):
        added = parts[0].to(part.dtype, copy=True)
        if len(parts) > 1:
            added.mul_(factors[0])
            for other, factor in zip(parts[1:], factors[1:], strict=True):
                added.add_(other.to(part.dtype), alpha=factor)
        part.add_(added, alpha=1.0 if len(parts) > 1 else factors[0])


def clip_factors(norms: torch.Tensor, clip_norm: float) -> torch.Tensor:
    """`clip_factor` of each norm; 0 for one that is not finite. Shape and dtype of `norms`."""
    bound = clip_norm * (1 - ROUNDING_MARGIN)
    return torch.where(norms <= bound, 1.0, bound / norms).where(torch.isfinite(norms), 0.0)


def clip_factor(norm: float, clip_norm: float) -> float:
    """min(1, C(1−margin)/norm)."""
    bound = clip_norm * (1 - ROUNDING_MARGIN)
    return 1.0 if norm <= bound else bound / norm


FP64_ROUNDING = 2.0**-53

SAME_BITS = 2.0**-40
"""Relative difference of two fp64 sums of the same fp32 numbers in another order, with much room."""


def sensitivity(clip_norm: float, records: int, batch_effect: float) -> float:
    """C·(1 + β(n)): the largest distance between the sums with and without any one of n records.

    The sum over n records is Σ_r t_r + e. t_r is what record r adds, ‖t_r‖ ≤ C, and e is the error of adding up.
    Removing record k changes three things:

    - t_k goes: C. `ROUNDING_MARGIN` covers the rounding of the norm to which it was clipped.
    - t_r of the others changes, since they are computed in batches of other shapes: each by at most ηC, and by
      2⁻⁴⁰C where sums in fp64 have another order. `batch_effect` says what η is. A GPU adds up to 32 records in fp32,
      whose error of at most 32·2⁻²⁴C for each record, with k and without, is part of η.
    - e changes, by at most ‖e‖ with k and without. k additions in any order err by at most k·2⁻⁵³ times the sum of
      what is added, in every coordinate and so in the L2 norm. Those terms are the records' gradients where each is
      formed; where none is, they are the outer products and rows of their positions, whose norms add up to at most
      κ‖t_r‖. A batch has at most 2¹⁶ of them, and there are at most n batches and n processes.

    So β(n) = n·(η + 2⁻⁴⁰) + 2·(2¹⁶ + 2n)·2⁻⁵³·κ·n: with η = 0 it is 2.0e-6 for n = 400, 5.3e-6 for n = 1,024 and
    1.2e-4 for n = 16,384.

    Args:
        clip_norm: C > 0.
        records: n, a public number, of all processes together.
        batch_effect: η ≥ 0.
    """
    added_up = 2 * (MAX_TERMS + 2 * records) * FP64_ROUNDING * MAX_CANCELLATION * records
    return clip_norm * (1 + records * (batch_effect + SAME_BITS) + added_up)
