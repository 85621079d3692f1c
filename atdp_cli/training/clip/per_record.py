"""The reference engine, correct for every model: one record at a time through autograd."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clip.batches import PhysicalBatch, collate, teacher_logits
from atdp_cli.training.clip.engine import ClippedSum, add_scaled, clip_factor, trainable, zeros_of
from atdp_cli.training.examples import Example


def clipped_sum(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
    """Each record's gradient over all its windows, its norm in fp64, clipped as one and summed.

    Args:
        model: In eval mode, so that dropout is off.
        records: The sample; empty records and empty samples are welcome.
        clip_norm: C > 0.
    """
    parameters = trainable(model)
    total = zeros_of(model)
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
        for part, added in zip(total, gradient, strict=True):
            add_scaled(part, (added, factor))
    return ClippedSum(total, norms, engine="per-record")


def record_gradient(
    model: PreTrainedModel, record: Example, parameters: Sequence[torch.nn.Parameter]
) -> list[torch.Tensor]:
    """The gradient of one record's loss, summed over its windows, of which there is at least one."""
    total: list[torch.Tensor] = []
    for index, (window, weights) in enumerate(zip(record.windows, record.weights, strict=True)):
        distilled = None if record.distilled is None else (record.distilled[index],)
        alone = collate([replace(record, windows=(window,), weights=(weights,), distilled=distilled)], [0])
        losses = _token_losses(model, alone)
        loss = losses @ torch.from_numpy(weights[1:]).to(losses)
        gradient = torch.autograd.grad(loss, parameters, materialize_grads=True)
        total = [part + added for part, added in zip(total, gradient, strict=True)] if total else list(gradient)
    return total


def _token_losses(model: PreTrainedModel, alone: PhysicalBatch) -> torch.Tensor:
    """The loss of each token but the first of the one window of a batch, shape [T−1]."""
    logits = logits_of(model, alone)[0, :-1]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    losses = F.cross_entropy(logits, alone.input_ids[0, 1:].to(logits.device), reduction="none")
    if alone.distilled is None:
        return losses
    distilled = alone.distilled[0, 1:].to(logits.device)
    shares = F.softmax(teacher_logits(alone)[0, :-1].to(logits)[distilled], dim=-1)
    # KL(teacher ‖ model) by its definition, with 0·log 0 = 0.
    divergences = F.kl_div(F.log_softmax(logits[distilled], dim=-1), shares, reduction="none").sum(-1)
    return losses.masked_scatter(distilled, alone.share * divergences + (1 - alone.share) * losses[distilled])
