"""A model whose parameters are sharded by FSDP2, and access to one parameter of it.

Shards are of the first dimension, as `torch.chunk` cuts it. The functions also take parameters that are not sharded.
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import random_tokens
from atdp_cli.model.forward import Batch, logits_of
from atdp_cli.training.parallel.ranks import Ranks


def shard_model(model: PreTrainedModel, ranks: Ranks, device: torch.device) -> None:
    """Shard every parameter among the processes, in place, and move the shards to the device.

    A block's parameters are full only while it runs. Autograd forms no gradients of full parameters: the clipping
    engine forms them from layers' inputs and output gradients, and FSDP2 holds none in full.
    """
    mesh = init_device_mesh(device.type, (ranks.size,))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for parameter in trained:
        parameter.requires_grad_(False)
    for block in _blocks(model):
        fully_shard(block, mesh=mesh)
    # By default the outermost would stay full after it ran.
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    # FSDP2 creates the full parameters in the first pass; created frozen, they stay so.
    with torch.no_grad():
        tokens = random_tokens(model, 2)
        source = (tokens, torch.ones_like(tokens)) if model.config.is_encoder_decoder else ()
        logits_of(model, Batch(tokens, None, *source))
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
    """Free the full parameters; a layer's parameters are then those of `model.parameters()` again."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def local_shard(parameter: torch.Tensor) -> torch.Tensor:
    """This process's shard of a parameter; not a copy."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def full_tensor(parameter: torch.Tensor) -> torch.Tensor:
    """The full parameter. Every process has to call this."""
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter


def shard_like(parameter: torch.Tensor, full: torch.Tensor) -> torch.Tensor:
    """A tensor shaped like a full parameter, sharded like that parameter, if it is not so already."""
    if not isinstance(parameter, DTensor) or isinstance(full, DTensor):
        return full
    mesh = parameter.device_mesh
    shards = torch.chunk(full, mesh.size())
    rank = mesh.get_local_rank()
    own = shards[rank] if rank < len(shards) else full[:0]
    return DTensor.from_local(
        own.contiguous(), mesh, parameter.placements, run_check=False, shape=parameter.shape, stride=parameter.stride()
    )
