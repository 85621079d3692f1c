"""What the losses of machine unlearning share: a record's flagged targets, together, as one sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clip.batches import PhysicalBatch
from atdp_cli.training.objective import Example
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


def _token_surprise(model: PreTrainedModel, batch: PhysicalBatch) -> torch.Tensor:
    """−log π of each token but the first, in fp32 or better, shape [windows, T − 1]."""
    logits = logits_of(model, batch)[:, :-1]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(logits.mT, batch.input_ids[:, 1:].to(logits.device), reduction="none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlaggedSurprise:
    """−log π of a batch, summed.

    Attributes:
        kept: Over the tokens without a flag, one number.
        flagged: Over each record's flagged tokens, shape [records].
        before: The same at the start of the stage; None where no start was given.
        length: |y| of each record. A record without flagged tokens has nothing to forget, not even a constant.
    """

    kept: torch.Tensor
    flagged: torch.Tensor
    before: torch.Tensor | None
    length: torch.Tensor


def surprise_of(
    model: PreTrainedModel, records: Sequence[Example], batch: PhysicalBatch, start: Sequence[torch.Tensor] = ()
) -> FlaggedSurprise:
    """The surprise of a batch of these records."""
    targets = targets_of(records, batch, model.device)
    before = None
    if start:
        # The start goes first: the graph of the second pass would not survive other values of the parameters.
        with torch.no_grad(), at_start(model, start):
            before = targets.by_record(_token_surprise(model, batch) * targets.forget)
    now = _token_surprise(model, batch)
    return FlaggedSurprise(
        kept=(now * targets.retain).sum(),
        flagged=targets.by_record(now * targets.forget),
        before=before,
        length=targets.by_record(targets.forget),
    )
