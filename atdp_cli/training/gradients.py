"""Gradients without clipping: of the records' losses, and their weighted mean over all processes."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from transformers import PreTrainedModel

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clipping.batches import PhysicalBatch, default_tokens, split_by_length
from atdp_cli.training.clipping.engine import ClippingEngine, trainable, zeros_of
from atdp_cli.training.clipping.forward import loss_gradient
from atdp_cli.training.distributed.collectives import all_reduce_sum
from atdp_cli.training.distributed.ranks import Ranks, local_items
from atdp_cli.training.execution import Precision
from atdp_cli.training.objective import Example
from atdp_cli.training.objectives.kinds import Distilled, Objective
from atdp_cli.training.objectives.unlearn import Unlearn
from atdp_cli.training.objectives.unlearning import unlearning_of, unlearning_sum
from atdp_cli.training.precision import in_precision
from atdp_cli.training.trainable import at_start

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
        objective: Of the stage. The losses of unlearning are no token's alone, and those of distillation need a second
            model: both go by autograd, whatever `engine`.
        start: The stage's start, where it needs it.
        seed: Of the stage.
    """
    if isinstance(objective, Unlearn):
        unlearning = unlearning_of(model, objective, start=start, seed=seed)
        return in_precision(precision, partial(unlearning_sum, tokens=default_tokens(model), unlearning=unlearning))
    if isinstance(objective, Distilled):
        return in_precision(precision, partial(gradient_sum, tokens=default_tokens(model), start=start))
    if engine is None:
        return in_precision(precision, partial(gradient_sum, tokens=default_tokens(model)))
    return lambda model, records: engine(model, records, math.inf).gradient


def mean_gradient(
    model: PreTrainedModel, batch: Sequence[Example], summed: GradientSum, ranks: Ranks
) -> tuple[torch.Tensor, ...]:
    """The gradient of the weighted mean loss over the batch's tokens."""
    weight = sum(float(values[1:].sum()) for example in batch for values in example.weights)
    gradient = summed(model, local_items(ranks, batch))
    for part in gradient:
        part.div_(max(weight, 1e-6))
    all_reduce_sum(ranks, gradient)
    return gradient


def gradient_sum(
    model: PreTrainedModel, records: Sequence[Example], *, tokens: int, start: Sequence[torch.Tensor] = ()
) -> tuple[torch.Tensor, ...]:
    """The gradient of the records' weighted losses, a physical batch of at most `tokens` tokens at a time.

    Args:
        start: The parameters that train, as they were at the start of the stage, where tokens are anchored to that.
    """
    parameters = trainable(model)
    total = zeros_of(model, torch.float32)
    for batch in split_by_length(records, tokens):
        # The start goes first: the graph of the second pass would not survive other values of the parameters.
        before = _logits_at_start(model, batch, start) if start else None
        logits = logits_of(model, batch)
        gradient = loss_gradient(logits, batch, before)
        gradients = torch.autograd.grad(logits, parameters, gradient, materialize_grads=True)
        for part, summand in zip(total, gradients, strict=True):
            part.add_(summand)
    return total


@torch.no_grad()
def _logits_at_start(model: PreTrainedModel, batch: PhysicalBatch, start: Sequence[torch.Tensor]) -> torch.Tensor:
    with at_start(model, start):
        return logits_of(model, batch)
