"""Gradients without clipping: sums over records, and their weighted mean over all processes."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.model.forward import logits_of
from atdp_cli.training.clip.batches import PhysicalBatch, default_tokens, loss_gradient, split_by_length
from atdp_cli.training.clip.engine import ClippingEngine, trainable, zeros_of
from atdp_cli.training.examples import Example
from atdp_cli.training.objectives import Objective, Unlearning
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.collectives import all_reduce_sum
from atdp_cli.training.parallel.ranks import Ranks, local_items
from atdp_cli.training.precision import in_precision
from atdp_cli.training.recipe import Train
from atdp_cli.training.trainable import at_start
from atdp_cli.training.unlearning import unlearning_loss

GradientSum = Callable[[PreTrainedModel, Sequence[Example]], tuple[torch.Tensor, ...]]
"""The gradient of some records' weighted losses, a tensor for each trainable parameter."""


def unclipped_sum(
    model: PreTrainedModel,
    engine: ClippingEngine | None,
    precision: Precision,
    objective: Objective,
    *,
    start: Sequence[torch.Tensor],
    seed: int,
) -> GradientSum:
    """The gradient's sum by an engine that clips nothing; by autograd, in this precision, for None.

    Args:
        objective: Of the stage. One with a loss of its own, or that compares with its start, goes by autograd, whatever
            `engine`.
        start: The stage's start, where it needs it.
        seed: Of the stage.
    """
    tokens, start = default_tokens(model), tuple(value.to(model.device) for value in start)
    if isinstance(objective, Unlearning):
        return in_precision(precision, partial(own_sum, objective=objective, tokens=tokens, start=start, seed=seed))
    if objective.demands.start:
        return in_precision(precision, partial(gradient_sum, tokens=tokens, start=start))
    if engine is None:
        return in_precision(precision, partial(gradient_sum, tokens=tokens))
    return lambda model, records: engine(model, records, math.inf).gradient


def mean_gradient(
    model: PreTrainedModel, batch: Sequence[Example], summed: GradientSum, ranks: Ranks
) -> tuple[torch.Tensor, ...]:
    """The gradient of the weighted mean loss over the batch's tokens."""
    weight = sum(float(values[1:].sum()) for example in batch for values in example.weights)
    gradient = summed(model, local_items(ranks, batch))
    torch._foreach_div_(list(gradient), max(weight, 1e-6))
    all_reduce_sum(ranks, gradient)
    return gradient


def own_sum(
    model: PreTrainedModel,
    records: Sequence[Example],
    *,
    objective: Unlearning,
    tokens: int,
    start: Sequence[torch.Tensor],
    seed: int,
) -> tuple[torch.Tensor, ...]:
    """The gradient of the records' losses as the objective has them, a physical batch at a time.

    Raises:
        UsageError: The loss does not depend on any parameter that trains.
    """
    parameters = trainable(model)
    total = zeros_of(model, torch.float32)
    for batch in split_by_length(records, tokens):
        loss = unlearning_loss(objective, model, records, batch, start=start, seed=seed)
        if not loss.requires_grad:
            raise UsageError(
                "The loss of this stage depends on nothing that trains.", "Choose another layer, or another recipe."
            )
        _add(total, torch.autograd.grad(loss, parameters, materialize_grads=True))
    return total


def _add(total: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> None:
    torch._foreach_add_(list(total), list(gradients))


def gradient_sum(
    model: PreTrainedModel, records: Sequence[Example], *, tokens: int, start: Sequence[torch.Tensor] = ()
) -> tuple[torch.Tensor, ...]:
    """The gradient of the records' weighted losses, a physical batch of at most `tokens` tokens at a time.

    Args:
        start: The parameters that train, as they were at the start of the stage, where tokens are distilled from that.
    """
    parameters = trainable(model)
    total = zeros_of(model, torch.float32)
    for batch in split_by_length(records, tokens):
        # The start goes first: the graph of the second pass would not survive other values of the parameters.
        before = _logits_at_start(model, batch, start) if start else None
        logits = logits_of(model, batch)
        gradient = loss_gradient(logits, batch, before)
        _add(total, torch.autograd.grad(logits, parameters, gradient, materialize_grads=True))
    return total


@torch.no_grad()
def _logits_at_start(model: PreTrainedModel, batch: PhysicalBatch, start: Sequence[torch.Tensor]) -> torch.Tensor:
    with at_start(model, start):
        return logits_of(model, batch)


def check_stage(model: PreTrainedModel, stage: Train) -> None:
    """Refuse a stage that does not fit the model.

    Raises:
        UsageError: Its objective is not for such a model.
    """
    if isinstance(stage.objective, Unlearning) and model.config.is_encoder_decoder:
        raise UsageError(
            f"{stage.objective.kind} is not for encoder-decoder models.", "Choose another recipe, as --recipe decoys."
        )
