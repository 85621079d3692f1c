"""The gradient of the records' losses with respect to the logits of a physical batch."""

import torch

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clipping.batches import PhysicalBatch


@torch.no_grad()
def loss_gradient(logits: torch.Tensor, batch: PhysicalBatch, start: torch.Tensor | None = None) -> torch.Tensor:
    """The gradient of Σ weight·(the token's loss) with respect to the logits: weight·(softmax − target).

    The target is the true token; for a distilled one λ·(what the teacher predicts) + (1 − λ)·(the true token).

    Args:
        logits: Shape [windows, T, V]; those at a position predict the token after it.
        start: Those of the model at the start of its stage, which then is the teacher; None for the batch's teacher.

    Returns:
        Shape [windows, T, V], in the dtype of the logits.
    """
    gradient = torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    following = torch.roll(batch.input_ids.to(logits.device), -1, dims=1)[..., None]
    one_hot = torch.ones_like(following, dtype=gradient.dtype)
    if batch.distilled is not None:
        distilled = _before(batch.distilled.to(logits.device))
        one_hot[distilled] = 1 - batch.share
        taught = teacher_logits(batch) if start is None else start
        expected = torch.softmax(taught, dim=-1, dtype=gradient.dtype).to(gradient.device)
        # Not by a product with 0: what a teacher says of other tokens has no say, also where it is no number.
        gradient.sub_(expected.masked_fill_(~distilled[..., None], 0.0), alpha=batch.share)
    gradient.scatter_add_(2, following, -one_hot)
    weights = _before(batch.weights.to(gradient))
    return gradient.mul_(weights[..., None]).to(logits.dtype)


@torch.no_grad()
def teacher_logits(batch: PhysicalBatch) -> torch.Tensor:
    """The teacher's logits for a batch, shape [windows, T, V]."""
    if batch.teacher is None:
        raise ValueError("the batch has no teacher")
    return logits_of(batch.teacher, batch)


def _before(values: torch.Tensor) -> torch.Tensor:
    """The values of the token after each position, shape [windows, T]; 0 after the last."""
    shifted = torch.roll(values, -1, dims=1)
    shifted[:, -1] = 0
    return shifted
