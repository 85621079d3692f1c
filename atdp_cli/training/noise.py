"""Gaussian noise on a clipped gradient sum."""

from collections.abc import Sequence

import torch

from atdp_cli.privacy.csprng import KeyStream


def add_noise(gradient_sum: Sequence[torch.Tensor], standard_deviation: float, stream: KeyStream) -> None:
    """Add N(0, standard_deviation²) to every coordinate, in place; the noise is drawn and scaled in fp64."""
    for part in gradient_sum:
        normals = torch.from_numpy(stream.normals(part.numel())).view(part.shape)
        part.copy_((part.double() + standard_deviation * normals).to(part.dtype))
