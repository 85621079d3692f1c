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

from atdp_cli.training.clipping.batches import PhysicalBatch, idle, split
from atdp_cli.training.clipping.engine import ROUNDING_MARGIN, ClippedSum, clip_factor, trainable, zeros_of
from atdp_cli.training.clipping.ghost_norm import (
    Use,
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

FP32_ROUNDING = 2.0**-24


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
    buffers: dict[torch.Tensor, torch.Tensor] = {}
    batches = list(split(records, tokens))
    rounds = all_reduce_max(ranks, len(batches)) if ranks.sharded else len(batches)
    for batch in batches:
        uses = capture(model, layers, batch, positions=positions)
        norms[list(batch.records)] = _clip(uses, batch, clip_norm, total, buffers)
    for _ in range(rounds - len(batches)):
        capture(model, layers, idle(model), positions=positions)
    return ClippedSum(tuple(total[parameter] for parameter in parameters), norms)


def _clip(
    uses: Uses,
    batch: PhysicalBatch,
    clip_norm: float,
    total: Mapping[torch.Tensor, torch.Tensor],
    buffers: dict[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """Add the batch's clipped gradients to `total` and return its records' norms."""
    count = len(batch.records)
    ghosts = {parameter: squared_norms(used).cpu() for parameter, used in uses.items() if not must_instantiate(used)}
    limit = _total(ghosts, count).sqrt() * (ROUNDING_MARGIN / FP32_ROUNDING)
    # Gradients whose terms nearly cancel are formed, so that the norm is that of the very numbers that are added up.
    ghosts = {parameter: squares for parameter, squares in ghosts.items() if not _exceeds(uses[parameter], limit)}
    formed = {parameter: used for parameter, used in uses.items() if parameter not in ghosts}
    squares = _total(ghosts, count)
    factors = torch.zeros_like(squares)
    for parameter in formed.keys() - buffers.keys():
        buffers[parameter] = torch.empty_like(total[parameter])
    for row in range(len(squares)):
        for parameter, used in formed.items():
            instantiate_gradient(used, row, buffers[parameter])
            squares[row] += squared_norm(buffers[parameter])
        norm = math.sqrt(float(squares[row]))
        if not math.isfinite(norm):
            continue
        factors[row] = clip_factor(norm, clip_norm)
        for parameter in formed:
            total[parameter].add_(buffers[parameter], alpha=float(factors[row]))
    for parameter, used in uses.items():
        if parameter in ghosts:
            add_weighted(used, factors.to(total[parameter].device), total[parameter])
    return squares.sqrt()


def _total(squares: Mapping[torch.Tensor, torch.Tensor], records: int) -> torch.Tensor:
    return sum(squares.values(), torch.zeros(records, dtype=torch.float64))


def _exceeds(uses: Sequence[Use], limit: torch.Tensor) -> bool:
    """Whether some record's terms are so much larger than its gradient that fp32 would round past the margin."""
    return bool((magnitudes(uses).cpu() > limit).any())
