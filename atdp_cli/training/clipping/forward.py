"""From a physical batch to logits, and the gradient of the records' losses with respect to them."""

import torch
from transformers import PreTrainedModel

from atdp_cli.model import forward
from atdp_cli.model.forward import Batch
from atdp_cli.training.clipping.batches import PhysicalBatch


def batch_logits(model: PreTrainedModel, batch: PhysicalBatch, *, positions: bool) -> torch.Tensor:
    """The model's logits for a physical batch; see `model.forward.logits_of`."""
    mask = torch.ones_like(batch.input_ids) if batch.attention_mask is None else batch.attention_mask
    padded = Batch(batch.input_ids, mask, batch.source_ids, batch.source_mask)
    return forward.logits_of(model, padded, positions=positions)


@torch.no_grad()
def loss_gradient(logits: torch.Tensor, batch: PhysicalBatch) -> torch.Tensor:
    """The gradient of Σ weight·(the token's loss) with respect to the logits: weight·(softmax − target).

    The target is the token that stands there; at an anchored token it is a distribution, that of `_target`.

    Args:
        logits: Shape [windows, T, V]; those at a position predict the token after it.

    Returns:
        Shape [windows, T, V], in the dtype of the logits.
    """
    found = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    following = torch.roll(batch.input_ids.to(logits.device), -1, dims=1)[..., None]
    learnt = torch.ones_like(following, dtype=found.dtype)
    if batch.anchored is not None:
        anchored = _before(batch.anchored.to(logits.device))
        learnt[anchored] = 0
        found[anchored] -= _target(reference_logits(batch)[anchored].to(found), following[anchored], batch)
    found.scatter_add_(2, following, -learnt)
    weights = _before(batch.weights.to(found))
    return found.mul_(weights[..., None]).to(logits.dtype)


def _target(logits: torch.Tensor, true: torch.Tensor, batch: PhysicalBatch) -> torch.Tensor:
    """softmax(logits / T), for target `without-true` given that the token is not the true one.

    A reference that deems every other token impossible says nothing of them; then they are all alike.

    Args:
        logits: The reference's at anchored tokens, shape [tokens, V]; overwritten.
        true: The tokens that stand there, int64, shape [tokens, 1].

    Returns:
        Shape [tokens, V]; each row sums to 1.
    """
    if batch.target == "without-true":
        logits.scatter_(1, true, -torch.inf)
        alike = torch.isneginf(logits).all(-1, keepdim=True)
        logits.masked_fill_(alike, 0.0).scatter_(1, true, -torch.inf)
    # The largest is taken off first, so that a small T does not overflow.
    logits.sub_(logits.amax(-1, keepdim=True)).div_(batch.temperature)
    return torch.softmax(logits, dim=-1)


@torch.no_grad()
def reference_logits(batch: PhysicalBatch) -> torch.Tensor:
    """What the batch's reference predicts, shape [windows, T, V]."""
    if batch.reference is None:
        raise ValueError("the batch has no reference")
    return batch_logits(batch.reference, batch, positions=False)


def _before(values: torch.Tensor) -> torch.Tensor:
    """The values of the token after each position, shape [windows, T]; 0 after the last."""
    found = torch.roll(values, -1, dims=1)
    found[:, -1] = 0
    return found
