"""Gaussian noise from a key stream."""

import math
from collections.abc import Sequence

import torch

from atdp_cli.privacy.rng import KeyStream
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

BLOCK = 1 << 15
"""Normals drawn at a time: a block fits in the processor's cache, which makes drawing seven times as fast."""


def normals(stream: KeyStream, count: int, device: torch.device | None = None) -> torch.Tensor:
    """`count` standard normals in fp64, shape [count], by the Box-Muller transform of 53-bit uniforms.

    The key stream is computed on the CPU; the transform on `device`, by default the CPU as well. The problem of
    floating-point Gaussians' rounding (Mironov 2012) is not solved here.
    """
    pairs = _uniforms_for(count) // 2
    uniforms = torch.from_numpy(stream.uniforms(2 * pairs)).to(device)
    radius = uniforms[:pairs].log_().mul_(-2).sqrt_()
    angle = uniforms[pairs:].mul_(2 * math.pi)
    return torch.cat((torch.cos(angle).mul_(radius), angle.sin_().mul_(radius)))[:count]


def _uniforms_for(count: int) -> int:
    """How many uniforms `count` normals take."""
    return count + count % 2


def add_noise(
    gradient_sum: Sequence[torch.Tensor], standard_deviation: float, stream: KeyStream, ranks: Ranks = SINGLE_PROCESS
) -> None:
    """Add N(0, standard_deviation²) to every coordinate, in place; the noise is drawn, scaled and added in fp64.

    Several processes with the same stream each add it to different coordinates, so that the sum over them has each
    coordinate's noise once, as with one process.
    """
    blocks = [block for part in gradient_sum for block in torch.split(part.view(-1), BLOCK)]
    for index, block in enumerate(blocks):
        if index % ranks.size == ranks.rank:
            block.add_(normals(stream, len(block), block.device), alpha=standard_deviation)
        else:
            stream.skip(_uniforms_for(len(block)))
