"""Physical batches: which windows share a forward pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from atdp_cli.model.forward import padded
from atdp_cli.model.windows import Window
from atdp_cli.training.objective import Example
from atdp_cli.training.recipe import Target

MOST_PADDING = 0.1
SPARE_TOKENS = 64
"""About what a pass costs beside its tokens: a sample that one batch would pad by no more is not cut."""

LOGIT_BYTES = 256 * 2**20
MOST_TOKENS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class PhysicalBatch:
    """Windows of records that have equally many of them; a record's windows lie side by side.

    Attributes:
        records: Which records of the sample these are.
        input_ids: int64, shape [windows, T], padded on the right with 0.
        attention_mask: int64, shape [windows, T]; None where nothing is padded.
        weights: fp32, shape [windows, T]: of each token in its record's loss; 0 at padding.
        anchored: bool, shape [windows, T]: tokens that are pulled to the reference; None where none is.
        reference: The model that they are pulled to.
        temperature, target: How, as `Anchored` has them.
        source_ids, source_mask: What an encoder reads, int64, shape [windows, S]; None for a model without one.
    """

    records: tuple[int, ...]
    input_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    weights: torch.Tensor
    anchored: torch.Tensor | None = None
    reference: PreTrainedModel | None = None
    temperature: float = 1.0
    target: Target = "reference"
    source_ids: torch.Tensor | None = None
    source_mask: torch.Tensor | None = None

    @property
    def windows(self) -> int:
        """The number of rows."""
        return len(self.input_ids)


def default_tokens(model: PreTrainedModel) -> int:
    """As many tokens as have 256 MiB of fp32 logits, at most 4,096."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    return int(min(MOST_TOKENS, max(1, LOGIT_BYTES // (4 * vocabulary))))


def split(sample: Sequence[Example], tokens: int) -> Iterator[PhysicalBatch]:
    """Cut a sample into batches of like length, each of at most `tokens` tokens or of one record.

    A record's windows stay together, so that its gradient can be clipped as one. Records without windows
    are left out. At most `MOST_PADDING` of a batch is there because its records differ in length, or
    `SPARE_TOKENS` tokens where that is the whole sample. The order depends on lengths alone and changes no sum but
    for rounding.
    """
    order = sorted(
        (row for row, example in enumerate(sample) if example.windows),
        key=lambda row: (len(sample[row].windows), _width(sample[row])),
    )
    most = 1.0 if _spare(sample, order) <= SPARE_TOKENS else MOST_PADDING
    group: list[int] = []
    widths: list[int] = []
    for row in order:
        count, width = len(sample[row].windows), _width(sample[row])
        # Sorted by width, so this record is the widest so far.
        cells = (len(group) + 1) * width
        full = cells * count > tokens or cells - sum(widths) - width > most * cells
        if group and (full or count != len(sample[group[0]].windows)):
            yield collate(sample, group)
            group, widths = [], []
        group.append(row)
        widths.append(width)
    if group:
        yield collate(sample, group)


def idle(model: PreTrainedModel) -> PhysicalBatch:
    """A batch of nobody's tokens, for a process that has none while the others run one."""
    tokens = torch.zeros((1, 2), dtype=torch.int64)
    source = tokens if model.config.is_encoder_decoder else None
    mask = None if source is None else torch.ones_like(tokens)
    return PhysicalBatch((0,), tokens, None, torch.zeros(1, 2), source_ids=source, source_mask=mask)


def _width(example: Example) -> int:
    return max(max(len(window.token_ids), _source_length(window)) for window in example.windows)


def _spare(sample: Sequence[Example], rows: Sequence[int]) -> int:
    """The padding, in tokens, of one batch of all these."""
    widest = max((_width(sample[row]) for row in rows), default=0)
    return sum(len(sample[row].windows) * (widest - _width(sample[row])) for row in rows)


def _source_length(window: Window) -> int:
    return 0 if window.source is None else len(window.source)


def collate(sample: Sequence[Example], rows: Sequence[int]) -> PhysicalBatch:
    """One batch of these records of the sample, which come from one stage: what is anchored, is to one target."""
    pairs = [pair for row in rows for pair in zip(sample[row].windows, sample[row].weights, strict=True)]
    ids, mask = padded([window.token_ids for window, _ in pairs])
    weights = torch.zeros(ids.shape)
    for place, (_, values) in enumerate(pairs):
        weights[place, : len(values)] = torch.from_numpy(values)
    masks = [mask for row in rows for mask in sample[row].anchored or ()]
    anchored = torch.zeros(ids.shape, dtype=torch.bool)
    for place, flags in enumerate(masks):
        anchored[place, : len(flags)] = torch.from_numpy(flags)
    sources = [window.source for window, _ in pairs if window.source is not None]
    source_ids, source_mask = padded(sources) if sources else (None, None)
    return PhysicalBatch(
        tuple(rows),
        ids,
        None if mask.all() else mask,
        weights,
        anchored=anchored if anchored.any() else None,
        reference=sample[rows[0]].reference,
        temperature=sample[rows[0]].temperature,
        target=sample[rows[0]].target,
        source_ids=source_ids,
        source_mask=source_mask,
    )
