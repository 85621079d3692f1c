"""From a physical batch to logits, and the gradient of the records' losses with respect to them."""

import torch
from transformers import PreTrainedModel

from atdp_cli.model import forward
from atdp_cli.model.forward import Batch
from atdp_cli.training.clipping.batches import PhysicalBatch


def logits_of(model: PreTrainedModel, batch: PhysicalBatch, *, positions: bool) -> torch.Tensor:
    """The model's logits for a physical batch; see `model.forward.logits_of`."""
    mask = torch.ones_like(batch.input_ids) if batch.attention_mask is None else batch.attention_mask
    padded = Batch(batch.input_ids, mask, batch.source_ids, batch.source_mask)
    return forward.logits_of(model, padded, positions=positions)


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
