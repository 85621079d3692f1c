"""Physical batches: the windows of one forward pass, and the gradient of their loss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from atdp_cli.model.forward import Batch, logits_of, pad
from atdp_cli.model.windows import Window
from atdp_cli.training.clip.engine import ADDED_IN_FP32, MAX_TERMS
from atdp_cli.training.examples import Example

MIN_WIDTH = 8
"""Products of fewer rows go through kernels of their own, which round in another way."""

MAX_PADDING = 0.25
"""The largest share of padding in a batch that `split_by_length` makes: more costs more than another batch would."""

LOGIT_BYTES = 256 * 2**20

MAX_TOKENS = 4096

GPU_LOGIT_SHARE = 1 / 32
"""The share of a GPU's memory that logits in fp32 may take."""

GPU_TOKENS = 1 << 14

PRIVATE_GPU_TOKENS = (1 << 11, 1 << 13)
"""Tokens of a private batch on a GPU, at least and at most: less in larger models, which keep a GPU busy with less."""

PRIVATE_GPU_PRODUCTS = 1 << 40
"""Parameters times tokens of a private batch on a GPU, where the limits allow it."""

CPU_WIDTHS, GPU_WIDTHS = 8, 2
"""The widths of batches between powers of two. A GPU loses less by padding than by batches that are hardly filled."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PhysicalBatch(Batch):
    """The windows of some records, a record's in adjacent rows. Those from `split` have the same number of windows.

    Attributes:
        records: The records' indices in the sample.
        weights: fp32, shape [windows, T]: each token's weight in its record's loss; 0 at padding.
        distilled: bool, shape [windows, T]: distilled tokens; None where there are none.
        teacher, share: As each of the records has them.
        fillers: Records of no weight that stand behind them, so that the batch has the size that all of its shape have.
    """

    records: tuple[int, ...]
    weights: torch.Tensor
    distilled: torch.Tensor | None = None
    teacher: PreTrainedModel | None = None
    share: float = 1.0
    fillers: int = 0

    @property
    def rows(self) -> int:
        """The number of records, fillers included."""
        return len(self.records) + self.fillers

    @property
    def windows(self) -> int:
        """The number of rows."""
        return len(self.input_ids)


def default_tokens(model: PreTrainedModel) -> int:
    """The tokens whose fp32 logits take 256 MiB, at most 4,096; on a GPU more, by its memory."""
    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    if model.device.type != "cuda":
        return min(MAX_TOKENS, max(1, LOGIT_BYTES // (4 * vocabulary)))
    room = GPU_LOGIT_SHARE * torch.cuda.get_device_properties(model.device).total_memory
    return int(min(GPU_TOKENS, max(1, room // (4 * vocabulary))))


def private_tokens(model: PreTrainedModel) -> int:
    """The tokens of a batch of a stage with noise: on a GPU all batches of a shape have them, so they are fewer."""
    tokens = default_tokens(model)
    if model.device.type != "cuda":
        return tokens
    least, most = PRIVATE_GPU_TOKENS
    rounded = 1 << (PRIVATE_GPU_PRODUCTS // int(model.num_parameters())).bit_length()
    return min(tokens, max(least, min(most, rounded)))


class Shape(NamedTuple):
    """The shape in which a record is computed: a function of that record alone.

    Attributes:
        windows: How many it has.
        width: T, padding included.
        padded: Whether a window is shorter than T, so that a mask is needed. Without one, models run other kernels.
        source_width, source_padded: The same of what an encoder reads; 0 and False without one.
    """

    windows: int
    width: int
    padded: bool
    source_width: int = 0
    source_padded: bool = False


def shape_of(example: Example, longest: int, widths: int = CPU_WIDTHS) -> Shape:
    """The shape of a record with windows.

    Args:
        longest: The widest batch that the model takes; a window is never padded beyond it.
        widths: See `padded_width`.
    """
    lengths = [len(window.token_ids) for window in example.windows]
    sources = [len(window.source) for window in example.windows if window.source is not None]
    width = padded_width(max(lengths), longest, widths)
    source_width = padded_width(max(sources), longest, widths) if sources else 0
    return Shape(len(lengths), width, min(lengths) < width, source_width, min(sources, default=0) < source_width)


def padded_width(length: int, longest: int, widths: int = CPU_WIDTHS) -> int:
    """`length` rounded up to a multiple of `MIN_WIDTH`, from some length on to one of `widths` between powers of two.

    At most `longest`. With 8 widths, 7/8 of 64 tokens or more are the window's own. Wider steps would pad more,
    narrower ones would leave fewer records a batch.
    """
    step = max(MIN_WIDTH, (1 << length.bit_length()) // (2 * widths))
    rounded = -(-length // step) * step
    return max(length, min(rounded, longest))


def split(sample: Sequence[Example], tokens: int, longest: int, *, fill: bool = False) -> Iterator[PhysicalBatch]:
    """Cut a sample into batches of records of one shape, each of at most `tokens` tokens or of one record.

    A record's shape does not depend on the others, so they cannot change by how much it is padded, whether it is
    masked or how its sums are rounded; see `batch_effect`. A record's windows stay together, so that its gradient
    can be clipped as one. Records without windows are left out.

    Args:
        tokens: Padding included.
        longest: See `shape_of`.
        fill: All batches of a shape have the same size, whatever the sample: a GPU takes other kernels for other
            sizes, which round in other ways.
    """
    groups: dict[Shape, list[int]] = {}
    for row, example in enumerate(sample):
        if example.windows:
            groups.setdefault(shape_of(example, longest, GPU_WIDTHS if fill else CPU_WIDTHS), []).append(row)
    for shape, rows in sorted(groups.items()):
        count = max(1, min(tokens, MAX_TERMS) // (shape.windows * max(shape.width, shape.source_width)))
        count = min(count, ADDED_IN_FP32) if fill else count
        for first in range(0, len(rows), count):
            batch = rows[first : first + count]
            yield collate(sample, batch, shape, fillers=count - len(batch) if fill else 0)


def must_run_alone(batches: Sequence[PhysicalBatch], norms: torch.Tensor) -> bool:
    """Whether a record's gradient is not finite and was computed beside others, which some kernels spoil as well.

    T5's in bf16 did, on a CPU with matrix instructions: the neighbours' gradients became NaN and added nothing, so one
    record changed what another added.

    Args:
        norms: Of all records of the sample, shape [records].
    """
    return any(len(batch.records) > 1 and not bool(norms[list(batch.records)].isfinite().all()) for batch in batches)


def split_by_length(sample: Sequence[Example], tokens: int) -> Iterator[PhysicalBatch]:
    """Cut a sample into batches of records of similar length, each of at most `tokens` tokens or of one record.

    A batch is padded to its longest window, so how a record's sums are rounded depends on the others. That is for
    training without noise; `split` is for private steps, and makes more batches.

    Args:
        tokens: Padding included.
    """
    rows = sorted((row for row, example in enumerate(sample) if example.windows), key=lambda row: _width(sample[row]))
    batch: list[int] = []
    filled = windows = 0
    for row in rows:
        used, count = sum(map(_length, sample[row].windows)), len(sample[row].windows)
        room = (windows + count) * _width(sample[row])
        if batch and (room > tokens or room - filled - used > MAX_PADDING * room):
            yield collate(sample, batch)
            batch, filled, windows = [], 0, 0
        batch.append(row)
        filled, windows = filled + used, windows + count
    if batch:
        yield collate(sample, batch)


def _length(window: Window) -> int:
    return max(len(window.token_ids), 0 if window.source is None else len(window.source))


def _width(example: Example) -> int:
    return max(map(_length, example.windows))


def idle(model: PreTrainedModel) -> PhysicalBatch:
    """A batch of no record's tokens, for a process that has no batch left while others still run theirs."""
    tokens = torch.zeros((1, 2), dtype=torch.int64)
    source = tokens if model.config.is_encoder_decoder else None
    mask = None if source is None else torch.ones_like(tokens)
    return PhysicalBatch(tokens, None, source, mask, records=(0,), weights=torch.zeros(1, 2))


def collate(
    sample: Sequence[Example], rows: Sequence[int], shape: Shape | None = None, *, fillers: int = 0
) -> PhysicalBatch:
    """One batch of these records of the sample, all of one stage, so that they share a teacher.

    Args:
        shape: That of each of these records; None to pad to the longest.
        fillers: Records of token 0 and no weight to add, of that shape.
    """
    examples = [sample[row] for row in rows]
    windows = [window for example in examples for window in example.windows]
    if shape is not None:
        windows += [_filler(shape)] * (fillers * shape.windows)
    batch = pad(windows) if shape is None else pad(windows, width=shape.width, source_width=shape.source_width)
    weights, distilled = torch.zeros(batch.input_ids.shape), torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for index, values in enumerate(values for example in examples for values in example.weights):
        weights[index, : len(values)] = torch.from_numpy(values)
    for index, flags in enumerate(flags for example in examples for flags in example.distilled or ()):
        distilled[index, : len(flags)] = torch.from_numpy(flags)
    return PhysicalBatch(
        batch.input_ids,
        batch.attention_mask,
        batch.source_ids,
        batch.source_mask,
        records=tuple(rows),
        weights=weights,
        distilled=distilled if distilled.any() else None,
        teacher=examples[0].teacher,
        share=examples[0].share,
        fillers=fillers,
    )


def _filler(shape: Shape) -> Window:
    """A window as wide as its batch: one that is shorter would bring a mask where the others need none."""
    ids, source = np.zeros(shape.width, dtype=np.int64), np.zeros(shape.source_width, dtype=np.int64)
    nothing = np.zeros(shape.width, dtype=np.bool_)
    return Window(0, ids, nothing, nothing, nothing, source if shape.source_width else None)


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
