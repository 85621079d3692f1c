"""The bookkeeping engine: one forward and one backward pass for many records, their gradients clipped one by one.

Source: Bu et al. 2022, "Differentially Private Optimization on Large Model at Small Cost": the backward pass
computes no parameter's gradient; norms and the clipped sum are formed from the recorded inputs and output gradients.
Here a record's gradient of a large matrix is formed once, and serves both its norm and the sum, wherever that
costs less than the norm's Gram product.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import context_length
from atdp_cli.training.clipping.batches import PhysicalBatch, idle, split
from atdp_cli.training.clipping.engine import (
    MAX_CANCELLATION,
    ClippedSum,
    add_scaled,
    clip_factor,
    trainable,
    zeros_of,
)
from atdp_cli.training.clipping.ghost_norm import (
    add_weighted,
    instantiate_gradient,
    magnitudes,
    must_instantiate,
    squared_norm,
    squared_norms,
)
from atdp_cli.training.clipping.hooks import Uses, capture
from atdp_cli.training.clipping.layer_rules import trained_layers
from atdp_cli.training.distributed.collectives import all_reduce_max
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.objective import Example

FORMED_AT_ONCE = 2
"""Records whose formed gradients are held until they are added: adding two at a time takes half as long."""


def clipped_sum(
    model: PreTrainedModel,
    records: Sequence[Example],
    clip_norm: float,
    *,
    tokens: int,
    positions: bool,
    ranks: Ranks = SINGLE_PROCESS,
) -> ClippedSum:
    """Σ of the records' clipped gradients, many records at a time.

    Args:
        model: In eval mode, so that dropout is off.
        records: The sample; empty records and empty samples are welcome.
        clip_norm: C > 0.
        tokens: The most tokens, padding included, of a physical batch.
        positions: See `capture`.
        ranks: Where the model's parameters are sharded, each process runs as many batches as the one with most.

    Raises:
        UnknownLayerError: A trained layer has no rule, or an input without one row for each window.
    """
    parameters = trainable(model)
    total: dict[torch.Tensor, torch.Tensor] = dict(zip(parameters, zeros_of(model), strict=True))
    norms = torch.zeros(len(records), dtype=torch.float64)
    layers = trained_layers(model)
    buffers: dict[torch.Tensor, list[torch.Tensor]] = {}
    batches = list(split(records, tokens, context_length(model)))
    rounds = all_reduce_max(ranks, len(batches)) if ranks.sharded else len(batches)
    for batch in batches:
        uses = capture(model, layers, batch, positions=positions)
        norms[list(batch.records)] = _clip(uses, batch, clip_norm, total, buffers)
    for _ in range(rounds - len(batches)):
        capture(model, layers, idle(model), positions=positions)
    return ClippedSum(tuple(total[parameter] for parameter in parameters), norms, engine="bookkeeping")


def _clip(
    uses: Uses,
    batch: PhysicalBatch,
    clip_norm: float,
    total: Mapping[torch.Tensor, torch.Tensor],
    buffers: dict[torch.Tensor, list[torch.Tensor]],
) -> torch.Tensor:
    """Add the batch's clipped gradients to `total` and return its records' norms."""
    count = len(batch.records)
    ghosts = {parameter: squared_norms(used).cpu() for parameter, used in uses.items() if not must_instantiate(used)}
    limit = _total(ghosts, count).sqrt() * (MAX_CANCELLATION / math.sqrt(max(1, len(ghosts))))
    # Gradients whose terms nearly cancel are formed, so that the norm is that of the very numbers that are added up.
    cancelling = {parameter: magnitudes(uses[parameter]).cpu() > limit for parameter in ghosts}
    squares = sum((ghosts[parameter].where(~cancelling[parameter], 0.0) for parameter in ghosts), _total({}, count))
    factors = torch.zeros_like(squares)
    pending: dict[torch.Tensor, list[tuple[torch.Tensor, int]]] = {}
    for row in range(count):
        formed = [parameter for parameter in uses if parameter not in ghosts or cancelling[parameter][row]]
        for parameter in formed:
            buffer = _buffer(buffers, parameter, row % FORMED_AT_ONCE)
            instantiate_gradient(uses[parameter], row, buffer)
            squares[row] += squared_norm(buffer)
            pending.setdefault(parameter, []).append((buffer, row))
        norm = math.sqrt(float(squares[row]))
        factors[row] = clip_factor(norm, clip_norm) if math.isfinite(norm) else 0.0
        if (row + 1) % FORMED_AT_ONCE == 0 or row + 1 == count:
            for parameter, waiting in pending.items():
                scaled = [(buffer, float(factors[owner])) for buffer, owner in waiting if factors[owner] > 0]
                if scaled:
                    add_scaled(total[parameter], *scaled)
            pending.clear()
    for parameter in ghosts:
        kept = factors.where(~cancelling[parameter], 0.0)
        add_weighted(uses[parameter], kept.to(total[parameter].device), total[parameter])
    return squares.sqrt()


def _buffer(buffers: dict[torch.Tensor, list[torch.Tensor]], parameter: torch.Tensor, place: int) -> torch.Tensor:
    """A tensor for a record's gradient of the parameter, the same for each `place`."""
    held = buffers.setdefault(parameter, [])
    while len(held) <= place:
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        held.append(torch.empty(parameter.shape, dtype=dtype, device=parameter.device))
    return held[place]


def _total(squares: Mapping[torch.Tensor, torch.Tensor], records: int) -> torch.Tensor:
    return sum(squares.values(), torch.zeros(records, dtype=torch.float64))
