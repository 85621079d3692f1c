"""Self-checks of an engine on random tokens: no record decides which engine runs.

In fp64 what two right algorithms compute differs by its rounding alone, so a small difference is enough to refuse one.
In the dtype that runs, `per-record` rounds too, and how far depends on the weights; an engine may be a few times as
far from fp64. Both leave room for rounding, but none for clipping: no record may add more than C.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.windows import Window
from atdp_cli.training.clip import per_record
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine, trainable
from atdp_cli.training.examples import Example
from atdp_cli.training.options import ClippingEngineName, Precision
from atdp_cli.training.precision import computing_in

STATED_EFFECT, LARGEST_EFFECT = 2.0**-14, 2.0**-10
"""η in fp32 where bits differ: 6.1e-5 wherever that is enough, and 9.8e-4 at most."""

MEASURED_SHARE = 8
"""The least ratio of the stated η to the measured one."""

PROBES = ((7, (5,)), (23, (12,)), (3, (20, 11)), (3, (60,)))
"""Rows of a batch, and the lengths of each record's windows: 584 tokens without padding."""

LONG_PROBE = (2, (1024,))
"""On a GPU as well: attention there may add up long windows in any order."""


def stated_effect(measured: float) -> float | None:
    """η for what was measured, a power of two; None where `LARGEST_EFFECT` is not enough."""
    effect = STATED_EFFECT
    while effect <= LARGEST_EFFECT:
        if MEASURED_SHARE * measured <= effect:
            return effect
        effect *= 2
    return None


def batch_effect(model: PreTrainedModel, engine: ClippingEngine) -> float:
    """The largest relative change of a record's gradient between being computed alone and beside others.

    The others have no weight, so their gradients are 0 and the sum is that one record's.
    """
    draw, longest, worst = np.random.default_rng(1), context_length(model), 0.0
    for rows, shape in PROBES if model.device.type == "cpu" else (*PROBES, LONG_PROBE):
        lengths = [min(length, longest) for length in shape]
        records = [random_record(model, draw, lengths, weighted=row == rows // 2) for row in range(rows)]
        alone = engine(model, [records[rows // 2]], math.inf)
        worst = max(worst, _distance(engine(model, records, math.inf).gradient, alone))
    return worst


def _distance(together: Sequence[torch.Tensor], alone: ClippedSum) -> float:
    squares = sum(
        float((beside.double() - own.double()).square().sum())
        for beside, own in zip(together, alone.gradient, strict=True)
    )
    change = math.sqrt(squares) / float(alone.norms[0])
    return math.inf if math.isnan(change) else change


def random_record(
    model: PreTrainedModel, draw: np.random.Generator, lengths: Sequence[int], *, row: int = 0, weighted: bool = True
) -> Example:
    """A record of random tokens and weights, a window for each length; a token is repeated in each.

    Args:
        weighted: False for weights of 0.
    """
    vocabulary = model.get_input_embeddings().weight.shape[0]
    windows, weights = [], []
    for length in lengths:
        ids = draw.integers(0, vocabulary, length)
        ids[length // 2] = ids[0]
        no_marks = np.zeros(length, dtype=np.bool_)
        source = draw.integers(0, vocabulary, length + 3) if model.config.is_encoder_decoder else None
        windows.append(Window(row, ids, no_marks, no_marks, no_marks, source))
        values = draw.uniform(0.1, 1.0, length).astype(np.float32)
        values[0] = 0
        weights.append(values if weighted else np.zeros_like(values))
    return Example(tuple(windows), tuple(weights))


FP64_TOLERANCE: Mapping[ClippingEngineName, float] = {"ghost": 1e-9, "opacus": 1e-6}
"""The largest relative difference to `per-record` in fp64. Opacus runs some layers again in backward hooks, where a
cast to fp32 still rounds."""

ROUNDING_FACTOR = 4
"""How many times farther from fp64 than `per-record` an engine may be, beside `ROUNDING`."""

ROUNDING: Mapping[torch.dtype, float] = {torch.float64: 1e-9, torch.float32: 1e-4}

BF16_ROUNDING = 2.0**-8

CHECKED_AT_ONCE = 1 << 26
"""Trained numbers that are compared at a time, so that the check needs less memory than training."""


def same_gradients(
    model: PreTrainedModel, name: ClippingEngineName, engine: ClippingEngine, precision: Precision
) -> bool:
    """Whether an engine computes what `per-record` does, in fp64 and in `precision`, each record at most C.

    The records have one and several windows, repeated tokens and unequal lengths; those longer than the first are
    clipped.
    """
    records = random_records(model)
    with without_zeros(model):
        for part in _parts(trainable(model)):
            with _training_only(model, part):
                exact = _exact(model, records)
                with computing_in_double(model):
                    if difference(engine(model, records, exact.clip_norm), exact.sum) > FP64_TOLERANCE[name]:
                        return False
                if not _rounds_like_loop(model, engine, precision, exact):
                    return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class _Exact:
    """What `per-record` computes in fp64, clipped to the norm of the first record."""

    records: Sequence[Example]
    clip_norm: float
    sum: ClippedSum


def _exact(model: PreTrainedModel, records: Sequence[Example]) -> _Exact:
    with computing_in_double(model):
        clip_norm = float(per_record.clipped_sum(model, records[:1], 1.0).norms[0])
        return _Exact(records, clip_norm, per_record.clipped_sum(model, records, clip_norm))


def _rounds_like_loop(model: PreTrainedModel, engine: ClippingEngine, precision: Precision, exact: _Exact) -> bool:
    half = exact.clip_norm / 2
    dtype = torch.bfloat16 if precision == "bfloat16" else trainable(model)[0].dtype
    with computing_in(model, precision):
        rounding, actual = (
            difference(run(model, exact.records, exact.clip_norm), exact.sum)
            for run in (per_record.clipped_sum, engine)
        )
        return actual <= ROUNDING_FACTOR * rounding + ROUNDING.get(dtype, BF16_ROUNDING) and all(
            # One of a single window, one of three.
            _length(engine(model, [record], half).gradient) <= half
            for record in (exact.records[0], exact.records[2])
        )


def difference(actual: ClippedSum, exact: ClippedSum) -> float:
    """The largest relative difference, of a norm or of the sum; infinite where a number is NaN."""
    norms = ((actual.norms - exact.norms).abs() / exact.norms).max()
    return max(float(norms.nan_to_num(nan=math.inf)), relative_distance(actual.gradient, exact.gradient))


def _parts(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    part: list[nn.Parameter] = []
    for parameter in parameters:
        if part and sum(map(nn.Parameter.numel, part)) + parameter.numel() > CHECKED_AT_ONCE:
            yield part
            part = []
        part.append(parameter)
    yield part


@contextmanager
def _training_only(model: nn.Module, part: Sequence[nn.Parameter]) -> Iterator[None]:
    chosen = {id(parameter) for parameter in part}
    others = [parameter for parameter in trainable(model) if id(parameter) not in chosen]
    for parameter in others:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_()


class _Double(TorchFunctionMode):
    """Casts to fewer bits, which many models have for norms and softmax, are casts to fp64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            func = torch.Tensor.double
        named = {name: _doubled(value) for name, value in (kwargs or {}).items()}
        return func(*map(_doubled, args), **named)


def _doubled(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


@contextmanager
def computing_in_double(model: nn.Module) -> Iterator[None]:
    """The model's parameters, buffers and computations in fp64. Afterwards each has its dtype and its bits again."""
    tensors = {
        id(tensor): tensor for tensor in chain(model.parameters(), model.buffers()) if tensor.is_floating_point()
    }
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    try:
        for tensor in tensors.values():
            tensor.data = tensor.data.double()
        with _Double():
            yield
    finally:
        for name, tensor in tensors.items():
            tensor.data = tensor.data.to(dtypes[name])


@contextmanager
def without_zeros(model: nn.Module) -> Iterator[None]:
    """Trained parameters that are all 0, as half of a fresh adapter, get random values: a 0 hides the gradients of
    the layers before it."""
    zeros = [parameter for parameter in trainable(model) if not parameter.any()]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in zeros:
            parameter.copy_(0.02 * torch.randn(parameter.shape, generator=generator))
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter in zeros:
                parameter.zero_()


def relative_distance(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """‖actual − expected‖ / ‖expected‖ over all parts; infinite where a number is NaN."""
    apart = [a.cpu().double() - b.cpu().double() for a, b in zip(actual, expected, strict=True)]
    ratio = _length(apart) / _length(expected)
    return math.inf if math.isnan(ratio) else ratio


def _length(parts: Sequence[torch.Tensor]) -> float:
    return math.sqrt(sum(float(part.double().square().sum()) for part in parts))


def random_records(model: PreTrainedModel) -> list[Example]:
    """Six records of random tokens and weights: several to a batch, padded, of one window and of three."""
    draw, longest = np.random.default_rng(0), context_length(model)
    shapes = ((10,), (11,), (7, 7, 3), (7, 4, 7), (11,), (2,))
    return [
        random_record(model, draw, [min(length, longest) for length in lengths], row=row)
        for row, lengths in enumerate(shapes)
    ]
