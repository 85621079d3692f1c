"""The parts of a private step that read records, each of which says what it used: the sample and the clipped sum."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.privacy.rng import KeyStream
from atdp_cli.privacy.trace import Clipped, Observe, Sampled, ignore_used
from atdp_cli.training.clipping.engine import ClippedSum, ClippingEngine
from atdp_cli.training.noise import BLOCK, distinct
from atdp_cli.training.objective import Example


def poisson_sample(
    records: int, sampling_rate: float, stream: KeyStream, observe: Observe = ignore_used
) -> npt.NDArray[np.int64]:
    """Indices of the records in this step: each one independently with probability q; it may be empty.

    The amplification by sampling that the accountant credits needs this sample to stay secret.
    """
    start = stream.position
    draws = stream.uniforms(records)
    rows = np.flatnonzero(draws < sampling_rate).astype(np.int64)
    observe(Sampled(records=len(draws), sampling_rate=sampling_rate, drawn=len(rows), start=start, end=stream.position))
    return rows


def clip_and_sum(
    engine: ClippingEngine,
    model: PreTrainedModel,
    records: Sequence[Example],
    clip_norm: float,
    observe: Observe = ignore_used,
) -> ClippedSum:
    """Σ of the records' gradients by the engine, each clipped to C."""
    clipped = engine(model, records, clip_norm)
    norms = clipped.norms[clipped.norms.isfinite()]
    observe(
        Clipped(
            engine=clipped.engine,
            clip_norm=clip_norm,
            records=len(records),
            coordinates=sum(part.numel() for part in clipped.gradient),
            length=_length(clipped.gradient),
            batch_effect=clipped.batch_effect,
            longest=float(norms.clamp(max=clip_norm).sum()),
            dtype=distinct(part.dtype for part in clipped.gradient),
            device=distinct(part.device.type for part in clipped.gradient),
        )
    )
    return clipped


def _length(parts: Sequence[torch.Tensor]) -> float:
    """The L2 norm of all parts together: each block's square in the parts' dtype, which is fp32 at least, and their
    sum in fp64."""
    blocks = [block for part in parts for block in torch.split(part.reshape(-1), BLOCK)]
    squares = [torch.dot(block, block) for block in blocks]
    return float(torch.stack(squares).double().sum().sqrt()) if squares else 0.0
