"""A copy of a checkpoint whose layers were rounded to int8, as a server would hold them."""

import shutil
from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from atdp_cli.model.checkpoint import load_checkpoint

LEAST, MOST = -128, 127


def write_rounded(folder: Path, out: Path) -> Path:
    """Copy a checkpoint to `out` with rounded weights, in the dtype that they had, and return `out`."""
    shutil.copytree(folder, out)
    model = load_checkpoint(folder).model
    round_to_int8(model)
    model.save_pretrained(out)
    return out


@torch.no_grad()
def round_to_int8(model: PreTrainedModel) -> None:
    """Round the weights of all linear layers but the head: symmetric, with one scale an output.

    These are the layers and the scales of torchao's weight-only int8, as transformers applies it.
    """
    head = model.get_output_embeddings()
    for layer in model.modules():
        if layer is not head and isinstance(layer, nn.Linear | Conv1D):
            inputs = 0 if isinstance(layer, Conv1D) else 1
            scale = layer.weight.abs().amax(dim=inputs, keepdim=True) / ((MOST - LEAST) / 2)
            rounded = (layer.weight * (1 / scale)).round().clamp(LEAST, MOST) * scale
            layer.weight.copy_(rounded.where(scale > 0, 0.0))
