"""From a physical batch to logits, and the gradient of the records' losses with respect to them."""

from typing import Any

import torch
from transformers import PreTrainedModel

from atdp_cli.training.clipping.batches import PhysicalBatch


def logits_of(model: PreTrainedModel, batch: PhysicalBatch, *, positions: bool) -> torch.Tensor:
    """The model's logits, shape [windows, T, V].

    Args:
        positions: Pass position ids of shape [windows, T]. A model that makes its own makes one row for all
            windows, and the gradient of a learned position would be that of the whole batch.
    """
    device = model.device
    ids = batch.input_ids.to(device)
    mask = None if batch.attention_mask is None else batch.attention_mask.to(device)
    if batch.source_ids is None or batch.source_mask is None:
        named: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    else:
        named = {"decoder_input_ids": ids, "decoder_attention_mask": mask}
        named |= {"input_ids": batch.source_ids.to(device), "attention_mask": batch.source_mask.to(device)}
    if positions:
        named["position_ids"] = torch.arange(ids.shape[1], device=device).repeat(len(ids), 1)
    logits: torch.Tensor = model(**named, use_cache=False).logits
    return logits


@torch.no_grad()
def loss_gradient(logits: torch.Tensor, batch: PhysicalBatch) -> torch.Tensor:
    """The gradient of Σ weight·(negative log-likelihood) with respect to the logits: weight·(softmax − onehot).

    Args:
        logits: Shape [windows, T, V]; those at a position predict the token after it.

    Returns:
        Shape [windows, T, V], in the dtype of the logits.
    """
    found = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    following = torch.roll(batch.input_ids.to(logits.device), -1, dims=1)[..., None]
    found.scatter_add_(2, following, torch.full_like(following, -1, dtype=found.dtype))
    weights = torch.roll(batch.weights.to(found), -1, dims=1)
    weights[:, -1] = 0
    return found.mul_(weights[..., None]).to(logits.dtype)
