"""The engine that is always right: one record at a time through autograd."""

import math
from collections.abc import Sequence

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel

from atdp_cli.training.clipping.engine import ClippedSum, clip_factor, trainable
from atdp_cli.training.objective import Example


def clipped_sum(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
    """Each record's gradient over all its windows, its norm in fp64, clipped as one and summed.

    Args:
        model: In eval mode, so that dropout is off.
        records: The sample; empty records and empty samples are welcome.
        clip_norm: C > 0.
    """
    parameters = trainable(model)
    total = [torch.zeros_like(parameter) for parameter in parameters]
    norms = torch.zeros(len(records), dtype=torch.float64)
    for row, record in enumerate(records):
        if not record.windows:
            continue
        gradient = record_gradient(model, record, parameters)
        norm = math.hypot(*(float(torch.linalg.vector_norm(part, dtype=torch.float64)) for part in gradient))
        norms[row] = norm
        if not math.isfinite(norm):
            continue
        factor = clip_factor(norm, clip_norm)
        for part, share in zip(total, gradient, strict=True):
            part.add_(share, alpha=factor)
    return ClippedSum(tuple(total), norms)


def record_gradient(
    model: PreTrainedModel, record: Example, parameters: Sequence[torch.nn.Parameter]
) -> list[torch.Tensor]:
    """The gradient of one record's loss, summed over its windows, of which there is at least one."""
    total: list[torch.Tensor] = []
    for window, weights in zip(record.windows, record.weights, strict=True):
        ids = torch.from_numpy(window.token_ids)
        logits = model(input_ids=ids[None], use_cache=False).logits[0, :-1]
        losses = F.cross_entropy(logits.float(), ids[1:], reduction="none")
        loss = losses @ torch.from_numpy(weights[1:])
        found = torch.autograd.grad(loss, parameters, materialize_grads=True)
        total = [part + share for part, share in zip(total, found, strict=True)] if total else list(found)
    return total
