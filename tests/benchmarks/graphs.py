"""The clipped sum with each batch as one CUDA graph: what a step would take if no CPU had to start its operations.

Batches of a stage with noise have one size for each shape, so a graph of each shape serves all of them. Not a part of
the product before it was measured on a GPU; `gpu.py` does that.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from atdp_cli.model.checkpoint import context_length
from atdp_cli.training.clip.batches import PhysicalBatch, split
from atdp_cli.training.clip.engine import ClippedSum, ClippingEngine, trainable, zeros_of
from atdp_cli.training.clip.ghost import capture
from atdp_cli.training.clip.layer_rules import trained_layers
from atdp_cli.training.clip.on_device import SUM_EFFECT, clip_on_device
from atdp_cli.training.examples import Example

Work = Callable[[PhysicalBatch], torch.Tensor]
"""Adds a batch's clipped gradients to the total and returns the norms of its records."""

WARM_UPS = 3
"""Runs before one is recorded, in which libraries reserve what they need."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchGraph:
    """A recorded batch: what it reads, to which each batch is copied, and where it writes the norms."""

    graph: torch.cuda.CUDAGraph
    inputs: PhysicalBatch
    norms: torch.Tensor

    def run(self, batch: PhysicalBatch) -> torch.Tensor:
        for target, source in zip(_tensors(self.inputs).values(), _tensors(batch).values(), strict=True):
            target.copy_(source, non_blocking=True)
        self.graph.replay()
        return self.norms.clone()


def graphed(model: PreTrainedModel, tokens: int) -> ClippingEngine:
    """The engine for one model whose weights stay where they are, with one clip norm, in one precision."""
    parameters, layers = trainable(model), trained_layers(model)
    summed, pool = zeros_of(model), torch.cuda.graph_pool_handle()
    total: dict[torch.Tensor, torch.Tensor] = dict(zip(parameters, summed, strict=True))
    graphs: dict[Hashable, BatchGraph] = {}

    def engine(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        def work(batch: PhysicalBatch) -> torch.Tensor:
            return clip_on_device(capture(model, layers, batch, positions=False), batch.rows, clip_norm, total)

        torch._foreach_zero_(list(summed))
        norms = torch.zeros(len(records), dtype=torch.float64)
        measured = []
        for batch in split(records, tokens, context_length(model), fill=True):
            kind = tuple((name, value.shape) for name, value in _tensors(batch).items())
            if kind not in graphs:
                graphs[kind] = record(batch, work, summed, pool)
            measured.append((list(batch.records), graphs[kind].run(batch)))
        for rows, values in measured:
            norms[rows] = values[: len(rows)].cpu()
        return ClippedSum(tuple(part.clone() for part in summed), norms, SUM_EFFECT, engine="ghost")

    return engine


def record(batch: PhysicalBatch, work: Work, total: Sequence[torch.Tensor], pool: Any) -> BatchGraph:
    """The graph of batches like this one.

    Raises:
        ValueError: It adds other bits than what it is made of.
    """
    before = [part.clone() for part in total]
    moved: dict[str, Any] = {name: value.to(total[0].device) for name, value in _tensors(batch).items()}
    inputs = replace(batch, **moved)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            torch._foreach_zero_(list(total))
            norms = work(inputs)
        expected = [part.clone() for part in (*total, norms)]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        norms = work(inputs)
    torch._foreach_zero_(list(total))
    graph.replay()
    if not all(torch.equal(one, other) for one, other in zip((*total, norms), expected, strict=True)):
        raise ValueError("the graph adds other bits than its operations one by one")
    torch._foreach_copy_(list(total), before)
    return BatchGraph(graph, inputs, norms)


def _tensors(batch: PhysicalBatch) -> dict[str, torch.Tensor]:
    values = {part.name: getattr(batch, part.name) for part in fields(batch)}
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
