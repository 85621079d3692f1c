"""The gradient of the records' losses with respect to the logits of a physical batch."""

import torch

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clipping.batches import PhysicalBatch


@torch.no_grad()
def loss_gradient(logits: torch.Tensor, batch: PhysicalBatch, start: torch.Tensor | None = None) -> torch.Tensor:
    """The gradient of Σ weight·(the token's loss) with respect to the logits: weight·(softmax − target).

    The target is the true token; for a token that is anchored to a reference the distribution that `_target` gives,
    and for one that is anchored to the start of the stage, λ·(what the start predicts) + (1 − λ)·(the true token).

    Args:
        logits: Shape [windows, T, V]; those at a position predict the token after it.
        start: Those of the model at the start of its stage; None where tokens are anchored to the batch's reference.

    Returns:
        Shape [windows, T, V], in the dtype of the logits.
    """
    gradient = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    following = torch.roll(batch.input_ids.to(logits.device), -1, dims=1)[..., None]
    one_hot = torch.ones_like(following, dtype=gradient.dtype)
    if batch.anchored is not None:
        anchored = _before(batch.anchored.to(logits.device))
        one_hot[anchored] = 1 - batch.share
        if start is None:
            gradient[anchored] -= _target(reference_logits(batch)[anchored].to(gradient), following[anchored], batch)
        else:
            before = torch.softmax(start, dim=-1, dtype=gradient.dtype)
            gradient.addcmul_(before, anchored[..., None].to(gradient.dtype), value=-batch.share)
    gradient.scatter_add_(2, following, -one_hot)
    weights = _before(batch.weights.to(gradient))
    return gradient.mul_(weights[..., None]).to(logits.dtype)


def _target(logits: torch.Tensor, true: torch.Tensor, batch: PhysicalBatch) -> torch.Tensor:
    """softmax(logits / T), for target `without-true` given that the token is not the true one.

    Where the reference gives every other token probability 0, the target is uniform over them.

    Args:
        logits: The reference's for anchored tokens, shape [tokens, V]; overwritten.
        true: The true tokens, int64, shape [tokens, 1].

    Returns:
        Shape [tokens, V]; each row sums to 1.
    """
    if batch.target == "without-true":
        logits.scatter_(1, true, -torch.inf)
        impossible = torch.isneginf(logits).all(-1, keepdim=True)
        logits.masked_fill_(impossible, 0.0).scatter_(1, true, -torch.inf)
    # The largest is subtracted first, so that a small T does not overflow.
    logits.sub_(logits.amax(-1, keepdim=True)).div_(batch.temperature)
    return torch.softmax(logits, dim=-1)


@torch.no_grad()
def reference_logits(batch: PhysicalBatch) -> torch.Tensor:
    """The reference model's logits for a batch, shape [windows, T, V]."""
    if batch.reference is None:
        raise ValueError("the batch has no reference")
    return logits_of(batch.reference, batch)


def _before(values: torch.Tensor) -> torch.Tensor:
    """The values of the token after each position, shape [windows, T]; 0 after the last."""
    shifted = torch.roll(values, -1, dims=1)
    shifted[:, -1] = 0
    return shifted
