"""Noise, samples and clipped sums of a step: Gaussian noise and Poisson samples from a key stream."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.files.documents import copy_fields
from atdp_cli.model.device import block_size
from atdp_cli.privacy.rng import KeyStream
from atdp_cli.privacy.trace import Clipped, Noised, Observe, Sampled, ignore_used
from atdp_cli.training.chacha import uniforms
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine
from atdp_cli.training.examples import Example
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks

BLOCK = 1 << 15
"""Normals drawn at a time on a CPU, whose cache holds them, which makes drawing seven times as fast."""


def normals(stream: KeyStream, count: int, device: torch.device | None = None) -> torch.Tensor:
    """`count` standard normals in fp64, shape [count], by the Box-Muller transform of 53-bit uniforms.

    All of it is made on `device`, by default the CPU: there the key stream is AES-256's, elsewhere ChaCha20's. The
    problem of floating-point Gaussians' rounding (Mironov 2012) is not solved here.
    """
    pairs = _uniforms_for(count) // 2
    drawn = uniforms(stream, 2 * pairs, device)
    radius = drawn[:pairs].log_().mul_(-2).sqrt_()
    angle = drawn[pairs:].mul_(2 * math.pi)
    return torch.cat((torch.cos(angle).mul_(radius), angle.sin_().mul_(radius)))[:count]


def _uniforms_for(count: int) -> int:
    """How many uniforms `count` normals take."""
    return count + count % 2


@dataclass(frozen=True, slots=True, eq=False)
class AddedNoise:
    """The noise that `add_noise` added, in this process until the tally is summed over all of them.

    Attributes:
        tally: The number of coordinates that noise was added to, and Σ of the squares of what was added; fp64.
        standard_deviation: What the normals were scaled by.
        start, end: Positions in the stream before and after.
        dtype, device: Of the sum.
        drawn_in: The dtype of the normals.
    """

    tally: torch.Tensor
    standard_deviation: float
    start: int
    end: int
    dtype: str
    device: str
    drawn_in: str

    def observed(self) -> Noised:
        """The noise as the trace records it."""
        coordinates, squares = self.tally.tolist()
        return copy_fields(Noised, self, coordinates=int(coordinates), squares=squares)


def add_noise(
    gradient_sum: Sequence[torch.Tensor], standard_deviation: float, stream: KeyStream, ranks: Ranks = SINGLE_PROCESS
) -> AddedNoise:
    """Add N(0, standard_deviation²) to every coordinate, in place; the noise is drawn, scaled and added in fp64.

    Several processes with the same stream each add it to different coordinates, so that the sum over them has each
    coordinate's noise once, as with one process. What was added is measured: the sum after less the sum before.
    """
    start, drawn_in = stream.position, set[torch.dtype]()
    blocks = list(_blocks(gradient_sum))
    coordinates, squares = 0, []
    for index, block in enumerate(blocks):
        count = sum(map(len, block))
        if index % ranks.size == ranks.rank:
            noise, before = normals(stream, count, block[0].device), _joined(block).to(torch.float64, copy=True)
            torch._foreach_add_(block, torch.split(noise, [len(part) for part in block]), alpha=standard_deviation)
            added = before.sub_(_joined(block))
            coordinates += count
            squares.append(torch.dot(added, added))
            drawn_in.add(noise.dtype)
        else:
            stream.skip(_uniforms_for(count))
    total = torch.stack(squares).sum() if squares else torch.zeros((), dtype=torch.float64)
    tally = torch.stack((torch.full_like(total, coordinates), total)).to(blocks[0][0].device if blocks else None)
    parts = [part for block in blocks for part in block]
    return AddedNoise(
        tally=tally,
        standard_deviation=standard_deviation,
        start=start,
        end=stream.position,
        dtype=distinct(part.dtype for part in parts),
        device=distinct(part.device.type for part in parts),
        drawn_in=distinct(drawn_in),
    )


def _blocks(gradient_sum: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """The coordinates in the order in which noise is added, each block's in one or more pieces, views of the sum.

    A GPU takes small tensors together, since each operation costs it as much as a million numbers.
    """
    block: list[torch.Tensor] = []
    for part in gradient_sum:
        size = block_size(part.device, BLOCK)
        for piece in torch.split(part.view(-1), size):
            if block and (part.device.type == "cpu" or sum(map(len, block)) + len(piece) > size):
                yield block
                block = []
            block.append(piece)
    if block:
        yield block


def _joined(pieces: Sequence[torch.Tensor]) -> torch.Tensor:
    return pieces[0] if len(pieces) == 1 else torch.cat(list(pieces))


def distinct(values: Iterable[object]) -> str:
    """The different values, in words."""
    return ", ".join(sorted({str(value).removeprefix("torch.") for value in values}))


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
    if parts and parts[0].device.type != "cpu":
        return float(torch.stack(torch._foreach_norm(list(parts))).double().square().sum().sqrt())
    blocks = [block for part in parts for block in torch.split(part.reshape(-1), BLOCK)]
    squares = [torch.dot(block, block) for block in blocks]
    return float(torch.stack(squares).double().sum().sqrt()) if squares else 0.0
