"""Physical batches: the windows that share a forward pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from atdp_cli.model.forward import Batch, pad
from atdp_cli.training.objective import Example
from atdp_cli.training.recipe import Target

MAX_PADDING = 0.1
SPARE_TOKENS = 64
"""About the fixed cost of a pass, in tokens: a sample is not cut if one batch would pad it by no more than this."""

LOGIT_BYTES = 256 * 2**20
MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PhysicalBatch(Batch):
    """The windows of records that all have the same number of them; a record's windows are adjacent rows.

    Attributes:
        records: The records' indices in the sample.
        weights: fp32, shape [windows, T]: each token's weight in its record's loss; 0 at padding.
        anchored: bool, shape [windows, T]: tokens pulled towards the reference; None where there are none.
        reference: The reference model.
        temperature, target: The settings of `Anchored`.
    """

    records: tuple[int, ...]
    weights: torch.Tensor
    anchored: torch.Tensor | None = None
    reference: PreTrainedModel | None = None
    temperature: float = 1.0
    target: Target = "reference"

    @property
    def windows(self) -> int:
        """The number of rows."""
        return len(self.input_ids)


def default_tokens(model: PreTrainedModel) -> int:
    """The tokens whose fp32 logits take 256 MiB, at most 4,096."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    return int(min(MAX_TOKENS, max(1, LOGIT_BYTES // (4 * vocabulary))))


def split(sample: Sequence[Example], tokens: int) -> Iterator[PhysicalBatch]:
    """Cut a sample into batches of similar lengths, each of at most `tokens` tokens or of one record.

    A record's windows stay together, so that its gradient can be clipped as one. Records without windows
    are left out. At most the share `MAX_PADDING` of a batch is padding, or `SPARE_TOKENS` tokens where that is all
    of the sample's. The order depends on lengths alone and changes sums only by rounding.
    """
    order = sorted(
        (row for row, example in enumerate(sample) if example.windows),
        key=lambda row: (len(sample[row].windows), _width(sample[row])),
    )
    max_padding = 1.0 if _padding(sample, order) <= SPARE_TOKENS else MAX_PADDING
    group: list[int] = []
    widths: list[int] = []
    for row in order:
        count, width = len(sample[row].windows), _width(sample[row])
        # Sorted by width, so this record is the widest so far.
        cells = (len(group) + 1) * width
        full = cells * count > tokens or cells - sum(widths) - width > max_padding * cells
        if group and (full or count != len(sample[group[0]].windows)):
            yield collate(sample, group)
            group, widths = [], []
        group.append(row)
        widths.append(width)
    if group:
        yield collate(sample, group)


def idle(model: PreTrainedModel) -> PhysicalBatch:
    """A batch of no record's tokens, for a process that has no batch left while others still run theirs."""
    tokens = torch.zeros((1, 2), dtype=torch.int64)
    source = tokens if model.config.is_encoder_decoder else None
    mask = None if source is None else torch.ones_like(tokens)
    return PhysicalBatch(tokens, None, source, mask, records=(0,), weights=torch.zeros(1, 2))


def _width(example: Example) -> int:
    return max(
        len(part) for window in example.windows for part in (window.token_ids, window.source) if part is not None
    )


def _padding(sample: Sequence[Example], rows: Sequence[int]) -> int:
    """The padding, in tokens, of one batch of all these records."""
    widest = max((_width(sample[row]) for row in rows), default=0)
    return sum(len(sample[row].windows) * (widest - _width(sample[row])) for row in rows)


def collate(sample: Sequence[Example], rows: Sequence[int]) -> PhysicalBatch:
    """One batch of these records of the sample, all of one stage, so that they share a reference and a target."""
    examples = [sample[row] for row in rows]
    batch = pad([window for example in examples for window in example.windows])
    weights, anchored = torch.zeros(batch.input_ids.shape), torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for index, values in enumerate(values for example in examples for values in example.weights):
        weights[index, : len(values)] = torch.from_numpy(values)
    for index, flags in enumerate(flags for example in examples for flags in example.anchored or ()):
        anchored[index, : len(flags)] = torch.from_numpy(flags)
    return PhysicalBatch(
        batch.input_ids,
        batch.attention_mask,
        batch.source_ids,
        batch.source_mask,
        records=tuple(rows),
        weights=weights,
        anchored=anchored if anchored.any() else None,
        reference=examples[0].reference,
        temperature=examples[0].temperature,
        target=examples[0].target,
    )
