"""The losses of machine unlearning, as `Unlearn` has them, and their gradient by autograd: nothing is clipped."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.model.forward import hidden_states, logits_of
from atdp_cli.training.clipping.batches import PhysicalBatch, split_by_length
from atdp_cli.training.clipping.engine import trainable, zeros_of
from atdp_cli.training.objective import Example
from atdp_cli.training.objectives.unlearn import Unlearn
from atdp_cli.training.trainable import at_start


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unlearning:
    """What the losses of a stage are computed with.

    Attributes:
        start: The trainable parameters at the start of the stage; empty where the loss does not need them.
        control: c·u of rmu, shape [d]; None for the other methods.
        layer: ℓ of rmu, counted from 1.
    """

    objective: Unlearn
    start: tuple[torch.Tensor, ...] = ()
    control: torch.Tensor | None = None
    layer: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Targets:
    """The targets of a batch, each at the place from which it is predicted: shape [windows, T − 1].

    Attributes:
        forget, retain: Their weights among the flagged and among the other tokens, else 0.
        rows: The record of each window, counted from 0 in this batch.
    """

    forget: torch.Tensor
    retain: torch.Tensor
    rows: torch.Tensor

    def by_record(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of the values, shape [windows, T − 1], over each record's windows."""
        sums = values.new_zeros(int(self.rows[-1]) + 1)
        return sums.index_add(0, self.rows, values.sum(1))


def unlearning_of(
    model: PreTrainedModel, objective: Unlearn, *, start: Sequence[torch.Tensor], seed: int
) -> Unlearning:
    """What a stage's losses are computed with.

    Args:
        start: The parameters that train, as they were at its start; empty where the loss does not need them.
        seed: Of the stage: a resumed one has the same control vector.
    """
    if objective.method != "rmu":
        return Unlearning(objective=objective, start=_like(model, start))
    size = model.get_input_embeddings().weight.shape[1]
    # As in the paper's code: each coordinate is uniform in [0, 1) before the vector is scaled.
    direction = functional.normalize(torch.rand(size, generator=torch.Generator().manual_seed(seed)), dim=0)
    control = (objective.steering * direction).to(model.device)
    return Unlearning(
        objective=objective, start=_like(model, start), control=control, layer=steered_layer(model, objective)
    )


def _like(model: PreTrainedModel, start: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(value.to(model.device) for value in start)


def steered_layer(model: PreTrainedModel, objective: Unlearn) -> int:
    """ℓ of rmu, counted from 1.

    Raises:
        UsageError: The model has no such layer.
    """
    layers = int(model.config.get_text_config().num_hidden_layers)
    layer = max(1, layers // 2) if objective.layer is None else objective.layer
    if layer > layers:
        raise UsageError(f"layer is {layer}; the model has {layers}.", f"Choose a layer from 1 to {layers}.")
    return layer


def check_unlearning(model: PreTrainedModel, objective: Unlearn) -> None:
    """Refuse a model that the objective does not fit.

    Raises:
        UsageError: It has an encoder, or no such layer.
    """
    if model.config.is_encoder_decoder:
        raise UsageError("Unlearning is not for encoder-decoder models.", "Choose another recipe, as --recipe decoys.")
    if objective.method == "rmu":
        steered_layer(model, objective)


def unlearning_sum(
    model: PreTrainedModel, records: Sequence[Example], *, tokens: int, unlearning: Unlearning
) -> tuple[torch.Tensor, ...]:
    """The gradient of the records' losses, a physical batch of at most `tokens` tokens at a time.

    Raises:
        UsageError: For rmu: only parameters behind its layer are trained.
    """
    parameters = trainable(model)
    total = zeros_of(model, torch.float32)
    for batch in split_by_length(records, tokens):
        loss = unlearning_loss(model, records, batch, unlearning)
        if not loss.requires_grad:
            raise UsageError(
                f"What trains lies behind layer {unlearning.layer}, so that no state there depends on it.",
                "Choose other layers, or a later layer.",
            )
        gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
        for part, gradient in zip(total, gradients, strict=True):
            part.add_(gradient)
    return total


def unlearning_loss(
    model: PreTrainedModel, records: Sequence[Example], batch: PhysicalBatch, unlearning: Unlearning
) -> torch.Tensor:
    """The sum of the losses of a batch of these records."""
    objective, targets = unlearning.objective, _targets(records, batch, model.device)
    if unlearning.control is not None:
        return _steered(model, batch, targets, unlearning, unlearning.control)
    # The start goes first: the graph of the second pass would not survive other values of the parameters.
    before = _surprise_at_start(model, batch, unlearning) if unlearning.start else None
    surprise = _surprise(model, batch)
    kept, flagged = (surprise * targets.retain).sum(), targets.by_record(surprise * targets.forget)
    if objective.method == "gradient-difference":
        return kept - objective.strength * flagged.sum()
    length = targets.by_record(targets.forget)
    if objective.method == "npo":
        if before is None:
            raise ValueError("npo needs the start of the stage")
        forgotten = _npo(flagged - targets.by_record(before * targets.forget), objective.inverse_temperature)
    else:
        forgotten = _simnpo(flagged / length.clamp(min=1), objective)
    # A record without flagged tokens has nothing to forget, not even a constant.
    return kept + objective.strength * forgotten[length > 0].sum()


def _npo(surprise: torch.Tensor, beta: float) -> torch.Tensor:
    """(2/β)·log(1 + (π/π₀)^β), from −log(π/π₀) of each record."""
    return 2 / beta * functional.softplus(-beta * surprise)


def _simnpo(surprise: torch.Tensor, objective: Unlearn) -> torch.Tensor:
    """−(2/β)·log σ(−(β/|y|)·log π − γ), from −(1/|y|)·log π of each record."""
    beta = objective.inverse_temperature
    return -2 / beta * functional.logsigmoid(beta * surprise - objective.margin)


def _steered(
    model: PreTrainedModel, batch: PhysicalBatch, targets: _Targets, unlearning: Unlearning, control: torch.Tensor
) -> torch.Tensor:
    """The loss of rmu."""
    objective = unlearning.objective
    with torch.no_grad(), at_start(model, unlearning.start):
        before = _states(model, batch, unlearning.layer)
    states = _states(model, batch, unlearning.layer)
    to_control, to_start = ((states - goal).square().mean(-1) for goal in (control.to(states), before))
    forgotten, kept = (to_control * targets.forget).sum(), (to_start * targets.retain).sum()
    return objective.strength * forgotten + objective.retain * kept


def _states(model: PreTrainedModel, batch: PhysicalBatch, layer: int) -> torch.Tensor:
    """The states from which tokens are predicted, in fp32 or better, shape [windows, T − 1, d]."""
    states = hidden_states(model, batch, layer)[:, :-1]
    return states.to(torch.promote_types(states.dtype, torch.float32))


def _surprise(model: PreTrainedModel, batch: PhysicalBatch) -> torch.Tensor:
    """−log π of each token but the first, in fp32 or better, shape [windows, T − 1]."""
    logits = logits_of(model, batch)[:, :-1]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(logits.mT, batch.input_ids[:, 1:].to(logits.device), reduction="none")


def _surprise_at_start(model: PreTrainedModel, batch: PhysicalBatch, unlearning: Unlearning) -> torch.Tensor:
    with torch.no_grad(), at_start(model, unlearning.start):
        return _surprise(model, batch)


def _targets(records: Sequence[Example], batch: PhysicalBatch, device: torch.device) -> _Targets:
    windows = [(place, window) for place, row in enumerate(batch.records) for window in records[row].windows]
    flags = torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for index, (_, window) in enumerate(windows):
        flags[index, : len(window.sensitive)] = torch.from_numpy(window.sensitive)
    weights = batch.weights[:, 1:]
    return _Targets(
        forget=(weights * flags[:, 1:]).to(device),
        retain=(weights * ~flags[:, 1:]).to(device),
        rows=torch.tensor([place for place, _ in windows], device=device),
    )
