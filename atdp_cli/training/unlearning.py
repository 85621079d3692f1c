"""The losses of machine unlearning, which are no sums over tokens: a record's flagged targets y are one sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.model.forward import hidden_states, logits_of
from atdp_cli.training.clip.batches import PhysicalBatch
from atdp_cli.training.examples import Example
from atdp_cli.training.objectives import NPO, RMU, GradientDifference, SimNPO, Unlearning
from atdp_cli.training.trainable import at_start


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targets:
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


def targets_of(records: Sequence[Example], batch: PhysicalBatch, device: torch.device) -> Targets:
    """The targets of a batch of these records."""
    windows = [(place, window) for place, row in enumerate(batch.records) for window in records[row].windows]
    flags = torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for index, (_, window) in enumerate(windows):
        flags[index, : len(window.sensitive)] = torch.from_numpy(window.sensitive)
    weights = batch.weights[:, 1:]
    return Targets(
        forget=(weights * flags[:, 1:]).to(device),
        retain=(weights * ~flags[:, 1:]).to(device),
        rows=torch.tensor([place for place, _ in windows], device=device),
    )


def unlearning_loss(
    objective: Unlearning,
    model: PreTrainedModel,
    records: Sequence[Example],
    batch: PhysicalBatch,
    *,
    start: Sequence[torch.Tensor],
    seed: int,
) -> torch.Tensor:
    """The sum of the losses of a batch of these records.

    Args:
        start: The trainable parameters at the start of the stage, where the objective compares with them.
        seed: Of the stage, the same when it is resumed.

    Raises:
        UsageError: The model has no layer that `objective` names.
    """
    targets = targets_of(records, batch, model.device)
    if isinstance(objective, RMU):
        return _rmu_loss(objective, model, batch, targets, start=start, seed=seed)
    before: torch.Tensor | float = 0.0
    if isinstance(objective, NPO):
        # The start goes first: the graph of the second pass would not survive other values of the parameters.
        with torch.no_grad(), at_start(model, start):
            before = targets.by_record(_surprise(model, batch) * targets.forget)
    now = _surprise(model, batch)
    kept, flagged = (now * targets.retain).sum(), targets.by_record(now * targets.forget)
    # A record without flagged tokens has nothing to forget, not even a constant.
    length = targets.by_record(targets.forget)
    match objective:
        case GradientDifference():
            forgotten = -flagged
        case NPO(beta=beta):
            forgotten = 2 / beta * functional.softplus(-beta * (flagged - before))[length > 0]
        case SimNPO(beta=beta, margin=margin):
            mean = flagged / length.clamp(min=1)
            forgotten = -2 / beta * functional.logsigmoid(beta * mean - margin)[length > 0]
    return kept + objective.strength * forgotten.sum()


def _surprise(model: PreTrainedModel, batch: PhysicalBatch) -> torch.Tensor:
    """−log π of each token but the first, in fp32 or better, shape [windows, T − 1]."""
    logits = logits_of(model, batch)[:, :-1]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(logits.mT, batch.input_ids[:, 1:].to(logits.device), reduction="none")


def _rmu_loss(
    objective: RMU,
    model: PreTrainedModel,
    batch: PhysicalBatch,
    targets: Targets,
    *,
    start: Sequence[torch.Tensor],
    seed: int,
) -> torch.Tensor:
    layer = steered_layer(objective, model)
    with torch.no_grad(), at_start(model, start):
        before = _states(model, batch, layer)
    states = _states(model, batch, layer)
    control = control_vector(objective, states.shape[-1], seed).to(states)
    to_control, to_start = ((states - goal).square().mean(-1) for goal in (control, before))
    forgotten, kept = (to_control * targets.forget).sum(), (to_start * targets.retain).sum()
    return objective.strength * forgotten + objective.retain * kept


def control_vector(objective: RMU, size: int, seed: int) -> torch.Tensor:
    """c·u, shape [size]. As in the paper's code, each coordinate is uniform in [0, 1) before it is scaled."""
    drawn = torch.rand(size, generator=torch.Generator().manual_seed(seed))
    return objective.steering * functional.normalize(drawn, dim=0)


def steered_layer(objective: RMU, model: PreTrainedModel) -> int:
    """ℓ, counted from 1.

    Raises:
        UsageError: The model has no such layer.
    """
    layers = int(model.config.get_text_config().num_hidden_layers)
    layer = max(1, layers // 2) if objective.layer is None else objective.layer
    if layer > layers:
        raise UsageError(f"layer is {layer}; the model has {layers}.", f"Choose a layer from 1 to {layers}.")
    return layer


def _states(model: PreTrainedModel, batch: PhysicalBatch, layer: int) -> torch.Tensor:
    """The states from which tokens are predicted, in fp32 or better, shape [windows, T − 1, d]."""
    states = hidden_states(model, batch, layer)[:, :-1]
    return states if states.dtype.itemsize >= 4 else states.float()
