"""Whether a record's gradient depends on the batch in which it is computed.

Batches are of records that have one shape (`split`), so a record is padded and masked alike in all of them. What is
left is the number of rows: libraries choose kernels by it, and another kernel may round in another way. On CPUs with
MKL the bits are the same from `MIN_WIDTH` positions on; elsewhere they need not be, so it is tried at start, on
random tokens. Which numbers are added in which order does not depend on their values, so random tokens can tell.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.windows import Window
from atdp_cli.training.clipping.engine import ClippedSum, ClippingEngine
from atdp_cli.training.objective import Example

STATED_EFFECT, LARGEST_EFFECT = 2.0**-14, 2.0**-10
"""η in fp32 where bits differ: 6.1e-5 wherever that is enough, and 9.8e-4 at most."""

MEASURED_SHARE = 8
"""So many times as large as what was measured η is at least."""

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
