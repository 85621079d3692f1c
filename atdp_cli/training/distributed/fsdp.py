"""A model whose parameters are parted among processes by FSDP2, and what is done with one parameter of it.

A part is of the first dimension, as `torch.chunk` cuts it. The functions take parameters that nobody parted as well.
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import random_tokens
from atdp_cli.training.distributed.ranks import Ranks


def shard_model(model: PreTrainedModel, ranks: Ranks, device: torch.device) -> None:
    """Part every parameter among the processes, in place, and move the parts to the device.

    Each block of the model is whole only while it runs. Autograd is kept from forming gradients of whole parameters:
    they are formed from what layers were given and what came back, and none is held whole by FSDP2.
    """
    mesh = init_device_mesh(device.type, (ranks.size,))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for parameter in trained:
        parameter.requires_grad_(False)
    for block in _blocks(model):
        fully_shard(block, mesh=mesh)
    # By default the outermost would stay whole after it ran.
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    # The whole parameters come into being with the first pass, and stay frozen.
    with torch.no_grad():
        tokens = random_tokens(model, 2).to(device)
        named = (
            {"input_ids": tokens, "decoder_input_ids": tokens}
            if model.config.is_encoder_decoder
            else {"input_ids": tokens}
        )
        model(**named, use_cache=False)
    reshard(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)


def _blocks(model: nn.Module) -> Iterator[nn.Module]:
    """The members of the model's outermost lists of layers."""
    for child in model.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _blocks(child)


def reshard(model: nn.Module) -> None:
    """Each process keeps its own part alone; a layer's parameters are then those of `model.parameters()` again."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def local_shard(parameter: torch.Tensor) -> torch.Tensor:
    """What this process holds of a parameter: the living numbers."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def full_tensor(parameter: torch.Tensor) -> torch.Tensor:
    """All of a parameter. Every process has to ask."""
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter


def shard_like(parameter: torch.Tensor, complete: torch.Tensor) -> torch.Tensor:
    """Of a tensor shaped like a parameter the part that goes with what is held of that; all of it where all is held."""
    if not isinstance(parameter, DTensor):
        return complete
    mesh = parameter.device_mesh
    parts = torch.chunk(complete, mesh.size())
    place = mesh.get_local_rank()
    own = parts[place] if place < len(parts) else complete[:0]
    return DTensor.from_local(
        own.contiguous(), mesh, parameter.placements, run_check=False, shape=parameter.shape, stride=parameter.stride()
    )
