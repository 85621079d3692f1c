"""Opacus' per-record gradients behind the engine's signature, for layers that ghost does not know."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from opacus.grad_sample import GradSampleHooks
from torch import nn
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.forward import logits_of
from atdp_cli.training.clip.batches import PhysicalBatch, loss_gradient, must_run_alone, split
from atdp_cli.training.clip.engine import ClippedSum, add_scaled, clip_factors, trainable, zeros_of
from atdp_cli.training.clip.layer_rules import UnknownLayerError
from atdp_cli.training.examples import Example


def clipped_sum(
    model: PreTrainedModel, records: Sequence[Example], clip_norm: float, *, tokens: int, positions: bool
) -> ClippedSum:
    """Σ of the records' clipped gradients; arguments as for the ghost engine.

    Every window's whole gradient is in memory at once.

    Raises:
        UnknownLayerError: Opacus has no gradient, or not one for each window, of some parameter.
    """
    parameters = trainable(model)
    total = zeros_of(model)
    norms = torch.zeros(len(records), dtype=torch.float64)
    batches = list(split(records, tokens, context_length(model)))
    for batch in batches:
        gradients = _record_gradients(model, parameters, batch, positions=positions)
        squares = torch.stack([_squared_norms(gradient) for gradient in gradients]).sum(0)
        norms[list(batch.records)] = squares.sqrt().cpu()
        factors = clip_factors(squares.sqrt(), clip_norm).tolist()
        for part, gradient in zip(total, gradients, strict=True):
            kept = [(added, factor) for added, factor in zip(gradient, factors, strict=True) if factor]
            if kept:
                add_scaled(part, *kept)
    if must_run_alone(batches, norms):
        return clipped_sum(model, records, clip_norm, tokens=1, positions=positions)
    return ClippedSum(total, norms, engine="opacus")


def _record_gradients(
    model: PreTrainedModel, parameters: Sequence[nn.Parameter], batch: PhysicalBatch, *, positions: bool
) -> list[torch.Tensor]:
    with _sampling(model, parameters), warnings.catch_warnings():
        # About the first layer, whose input takes no gradient, where only its output's is needed; and about speed.
        for text in ("Full backward hook is firing", "There is a performance drop"):
            warnings.filterwarnings("ignore", text, UserWarning)
        logits = logits_of(model, batch, positions=positions)
        torch.autograd.backward(logits, loss_gradient(logits, batch))
        samples = [getattr(parameter, "grad_sample", None) for parameter in parameters]
    shape = (len(batch.records), -1)
    gradients = []
    for parameter, sample in zip(parameters, samples, strict=True):
        if not isinstance(sample, torch.Tensor) or sample.shape != (batch.windows, *parameter.shape):
            raise UnknownLayerError("a parameter of which Opacus has no gradient for each window")
        # Under autocast samples are bf16, in which neither their sums nor their norms would be right.
        dtype = torch.promote_types(sample.dtype, torch.float32)
        gradients.append(sample.reshape(*shape, *parameter.shape).sum(1, dtype=dtype))
    return gradients


@contextmanager
def _sampling(model: PreTrainedModel, parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Opacus' hooks on the model. They skip layers that are not in training mode, so layers that own parameters are
    put into it; dropout owns none and stays off."""
    owners = [layer for layer in model.modules() if any(p.requires_grad for p in layer.parameters(recurse=False))]
    hooks = GradSampleHooks(model, loss_reduction="sum", strict=True)
    modes = [layer.training for layer in owners]
    for layer in owners:
        layer.training = True
    try:
        yield
    finally:
        hooks.cleanup()
        for layer, mode in zip(owners, modes, strict=True):
            layer.training = mode
        for parameter in parameters:
            parameter.grad = None


def _squared_norms(gradient: torch.Tensor) -> torch.Tensor:
    """Shape [R], fp64."""
    rows = torch.linalg.vector_norm(gradient.reshape(len(gradient), -1, gradient.shape[-1]), dim=2)
    squares: torch.Tensor = rows.double().square().sum(1)
    return squares
