"""The ghost engine: one forward and one backward pass for many records, their gradients clipped one by one.

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
from atdp_cli.training.clipping.batches import PhysicalBatch, idle, must_run_alone, split
from atdp_cli.training.clipping.engine import (
    MAX_CANCELLATION,
    ClippedSum,
    add_scaled,
    clip_factor,
    trainable,
    zeros_of,
)
from atdp_cli.training.clipping.ghost_norm import (
    Use,
    add_weighted,
    formed_norms,
    instantiate_gradients,
    magnitudes,
    must_instantiate,
    squared_norms,
)
from atdp_cli.training.clipping.hooks import Uses, capture
from atdp_cli.training.clipping.layer_rules import trained_layers
from atdp_cli.training.distributed.collectives import all_reduce_max
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.objective import Example

FORMED_AT_ONCE = 2
"""Records whose formed gradients are held until they are added: on a CPU two at a time take half as long."""

FORMED_BYTES = 4 * 2**30
"""Of formed gradients that are held on a GPU, which waits for the CPU each time that they are added."""


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
    batches = list(split(records, tokens, context_length(model)))
    rounds = all_reduce_max(ranks, len(batches)) if ranks.sharded else len(batches)
    for batch in batches:
        uses = capture(model, layers, batch, positions=positions)
        norms[list(batch.records)] = _clip(uses, batch, clip_norm, total, buffers)
    for _ in range(rounds - len(batches)):
        capture(model, layers, idle(model), positions=positions)
    again = must_run_alone(batches, norms)
    if all_reduce_max(ranks, int(again)) if ranks.sharded else again:
        return clipped_sum(model, records, clip_norm, tokens=1, positions=positions, ranks=ranks)
    return ClippedSum(tuple(total[parameter] for parameter in parameters), norms, engine="ghost")


def _clip(
    uses: Uses,
    batch: PhysicalBatch,
    clip_norm: float,
    total: Mapping[torch.Tensor, torch.Tensor],
    buffers: dict[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """Add the batch's clipped gradients to `total` and return its records' norms."""
    count = len(batch.records)
    unformed = [parameter for parameter, used in uses.items() if not must_instantiate(used)]
    ghosts = _on_cpu({parameter: squared_norms(uses[parameter]) for parameter in unformed})
    limit = _total(ghosts, count).sqrt() * (MAX_CANCELLATION / math.sqrt(max(1, len(ghosts))))
    # Gradients whose terms nearly cancel are formed, so that the norm is that of the very numbers that are added up.
    terms = _on_cpu({parameter: magnitudes(uses[parameter]) for parameter in unformed})
    cancelling = {parameter: size > limit for parameter, size in terms.items()}
    squares = sum((ghosts[parameter].where(~cancelling[parameter], 0.0) for parameter in ghosts), _total({}, count))
    formed = {parameter: cancelling.get(parameter, torch.ones(count)).nonzero()[:, 0].tolist() for parameter in uses}
    factors = torch.zeros_like(squares)
    at_once = _formed_at_once(total)
    for first in range(0, count, at_once):
        last = min(first + at_once, count)
        gradients = {
            parameter: (rows, _form(uses[parameter], rows, parameter, buffers))
            for parameter, every in formed.items()
            if (rows := [row for row in every if first <= row < last])
        }
        squares[first:last] = _with_formed(squares[first:last], first, gradients)
        for row in range(first, last):
            norm = math.sqrt(float(squares[row]))
            factors[row] = clip_factor(norm, clip_norm) if math.isfinite(norm) else 0.0
        for parameter, (rows, each) in gradients.items():
            pairs = zip(each, factors[rows].tolist(), strict=True)
            if scaled := [(gradient, factor) for gradient, factor in pairs if factor > 0]:
                add_scaled(total[parameter], *scaled)
    for parameter in ghosts:
        kept = factors.where(~cancelling[parameter], 0.0)
        add_weighted(uses[parameter], kept.to(total[parameter].device), total[parameter])
    return squares.sqrt()


def _formed_at_once(total: Mapping[torch.Tensor, torch.Tensor]) -> int:
    """How many records' gradients are formed before they are added."""
    if all(part.device.type == "cpu" for part in total.values()):
        return FORMED_AT_ONCE
    return max(FORMED_AT_ONCE, FORMED_BYTES // (4 * sum(part.numel() for part in total.values())))


def _form(
    used: Sequence[Use], rows: Sequence[int], parameter: torch.Tensor, buffers: dict[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """These records' gradients of a parameter, in a buffer that the next ones overwrite."""
    buffer = buffers.get(parameter)
    if buffer is None or len(buffer) < len(rows):
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        buffer = torch.empty((len(rows), *parameter.shape), dtype=dtype, device=parameter.device)
        buffers[parameter] = buffer
    instantiate_gradients(used, rows, buffer[: len(rows)])
    return buffer[: len(rows)]


def _with_formed(
    squares: torch.Tensor, first: int, gradients: Mapping[torch.Tensor, tuple[Sequence[int], torch.Tensor]]
) -> torch.Tensor:
    """The squared norms of some records, those of their formed gradients added.

    Args:
        squares: Of the parameters whose gradients were not formed, fp64, shape [records].
        first: The row of the first of these records.
        gradients: Of each other parameter: the rows of some of these records, and their gradients.
    """
    if not gradients:
        return squares
    sums = squares.to(next(iter(gradients)).device, copy=True)
    for rows, formed in gradients.values():
        places = slice(None) if len(rows) == len(squares) else [row - first for row in rows]
        sums[places] += formed_norms(formed)
    return sums.cpu()


def _on_cpu(values: Mapping[torch.Tensor, torch.Tensor]) -> dict[torch.Tensor, torch.Tensor]:
    """Each parameter's numbers, one for each record, in one transfer."""
    together = torch.stack(list(values.values())).cpu() if values else ()
    return dict(zip(values, together, strict=True))


def _total(squares: Mapping[torch.Tensor, torch.Tensor], records: int) -> torch.Tensor:
    return sum(squares.values(), torch.zeros(records, dtype=torch.float64))
