"""The ghost engine: one forward and one backward pass for many records, their gradients clipped one by one.

Source: Bu et al. 2022, "Differentially Private Optimization on Large Model at Small Cost": the backward pass
computes no parameter's gradient; norms and the clipped sum are formed from the recorded inputs and output gradients.
Here a record's gradient of a large matrix is formed once, and serves both its norm and the sum, wherever that
costs less than the norm's Gram product.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.models.t5.modeling_t5 import T5Attention

from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.device import same_bits
from atdp_cli.model.forward import logits_of
from atdp_cli.training.clip.batches import PhysicalBatch, idle, loss_gradient, must_run_alone, split
from atdp_cli.training.clip.engine import MAX_CANCELLATION, ClippedSum, add_scaled, clip_factor, trainable, zeros_of
from atdp_cli.training.clip.ghost_norm import (
    Use,
    add_weighted,
    formed_norms,
    instantiate_gradients,
    magnitudes,
    must_instantiate,
    squared_norms,
)
from atdp_cli.training.clip.layer_rules import Call, Rule, UnknownLayerError, trained_layers
from atdp_cli.training.clip.on_device import SUM_EFFECT, clip_on_device
from atdp_cli.training.examples import Example
from atdp_cli.training.parallel.collectives import all_reduce_max
from atdp_cli.training.parallel.fsdp import reshard
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.trainable import frozen

Uses = dict[torch.Tensor, list[Use]]
"""How each parameter was used; one that layers share has several uses."""


@dataclass(slots=True)
class _Tape:
    """The calls of one forward pass. Not recording in the backward pass, where checkpointed layers run again.

    Attributes:
        zero: Takes a gradient; adding it to an output makes gradients flow to that output.
        calls: In their order; None until the backward pass has reached a call.
    """

    batch: PhysicalBatch
    zero: torch.Tensor
    calls: list[tuple[nn.Module, Rule, Call] | None] = field(default_factory=list)
    recording: bool = True

    def record(
        self, layer: nn.Module, rule: Rule, inputs: Sequence[Any], named: Mapping[str, Any], output: torch.Tensor
    ) -> None:
        """Record a call as soon as its output's gradient is there."""
        if not self.recording:
            return
        inputs, named = tuple(map(_detached, inputs)), {name: _detached(value) for name, value in named.items()}
        index, batch = len(self.calls), self.batch
        self.calls.append(None)

        def complete(gradient: torch.Tensor) -> None:
            call = Call(inputs, named, gradient, batch.windows, batch.input_ids.shape[1], batch.rows)
            self.calls[index] = layer, rule, call

        output.register_hook(complete)  # type: ignore[no-untyped-call]


def capture(
    model: PreTrainedModel, layers: Sequence[tuple[nn.Module, Rule]], batch: PhysicalBatch, *, positions: bool
) -> Uses:
    """Run a batch forwards and backwards; no parameter's own gradient is computed.

    Args:
        layers: From `trained_layers`.
        positions: See `logits_of`.

    Raises:
        UnknownLayerError: A layer's input did not have one row for each window.
    """
    trained = trainable(model)
    tape = _Tape(batch, zero=torch.zeros((), device=model.device, requires_grad=True))
    with frozen(trained), _hooked(layers, tape), torch.enable_grad():
        with same_bits(model.device):
            logits = logits_of(model, batch, positions=positions)
        tape.recording = False
        gradient = loss_gradient(logits, batch)
        with same_bits(model.device):
            torch.autograd.backward(logits, gradient)
    reshard(model)
    return _uses(tape, set(trained))


@contextmanager
def _hooked(layers: Sequence[tuple[nn.Module, Rule]], tape: _Tape) -> Iterator[None]:
    with ExitStack() as stack:
        for layer, rule in layers:
            if type(layer) is T5Attention:
                stack.enter_context(_bias_of_each_window(layer, rule, tape))
                continue
            handle = layer.register_forward_hook(_hook(rule, tape), with_kwargs=True)
            stack.callback(handle.remove)
        yield


@contextmanager
def _bias_of_each_window(attention: T5Attention, rule: Rule, tape: _Tape) -> Iterator[None]:
    """Let `attention` compute its relative position bias once for each window, and record it, while the block runs.

    What is recorded are the buckets, shape [queries, keys], as the call's input, and the bias of each window, shape
    [windows, heads, queries, keys], as its output.
    """
    original = attention.compute_bias
    buckets: list[torch.Tensor] = []

    def remember(_: Any, inputs: tuple[Any, ...]) -> None:
        buckets.append(inputs[0])

    def compute(*arguments: Any, **named: Any) -> torch.Tensor:
        bias: torch.Tensor = original(*arguments, **named)
        separate = bias.detach().repeat(tape.batch.windows, 1, 1, 1) + tape.zero.to(bias.dtype)
        tape.record(attention, rule, (buckets[-1],), {}, separate)
        return separate

    handle = attention.relative_attention_bias.register_forward_pre_hook(remember)
    attention.compute_bias = compute  # type: ignore[method-assign, unused-ignore]
    try:
        yield
    finally:
        del attention.compute_bias
        handle.remove()


def _hook(rule: Rule, tape: _Tape) -> Any:
    def hook(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        if not isinstance(output, torch.Tensor):
            raise UnknownLayerError(f"a layer of type {type(layer).__qualname__} that does not return a tensor")
        if not output.requires_grad:
            output = output + tape.zero.to(output.dtype)
        tape.record(layer, rule, inputs, named, output)
        return output

    return hook


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _uses(tape: _Tape, trained: Container[torch.Tensor]) -> Uses:
    uses: Uses = {}
    with torch.no_grad():
        for layer, rule, call in filter(None, tape.calls):
            for parameter, use in rule(layer, call):
                if parameter in trained:
                    uses.setdefault(parameter, []).append(use)
    return uses


FORMED_AT_ONCE = 2
"""Records whose formed gradients are held until they are added: on a CPU two at a time take half as long."""


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
    parameters, on_cpu = trainable(model), model.device.type == "cpu"
    summed = zeros_of(model)
    total: dict[torch.Tensor, torch.Tensor] = dict(zip(parameters, summed, strict=True))
    layers = trained_layers(model)
    buffers: dict[torch.Tensor, torch.Tensor] = {}
    batches = list(split(records, tokens, context_length(model), fill=not on_cpu))
    rounds = all_reduce_max(ranks, len(batches)) if ranks.sharded else len(batches)
    measured: list[torch.Tensor] = []
    for batch in batches:
        uses = capture(model, layers, batch, positions=positions)
        if on_cpu:
            measured.append(_clip(uses, batch, clip_norm, total, buffers))
        else:
            measured.append(clip_on_device(uses, batch.rows, clip_norm, total)[: len(batch.records)])
    norms = _by_record(batches, measured, len(records))
    for _ in range(rounds - len(batches)):
        capture(model, layers, idle(model), positions=positions)
    again = must_run_alone(batches, norms)
    if all_reduce_max(ranks, int(again)) if ranks.sharded else again:
        return clipped_sum(model, records, clip_norm, tokens=1, positions=positions, ranks=ranks)
    return ClippedSum(summed, norms, 0.0 if on_cpu else SUM_EFFECT, engine="ghost")


def _by_record(batches: Sequence[PhysicalBatch], measured: Sequence[torch.Tensor], records: int) -> torch.Tensor:
    """The norms of all records, on the CPU, where a GPU's come in one transfer."""
    norms = torch.zeros(records, dtype=torch.float64)
    if batches:
        norms[[row for batch in batches for row in batch.records]] = torch.cat(list(measured)).cpu()
    return norms


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
    ghosts = {parameter: squared_norms(uses[parameter]) for parameter in unformed}
    limit = _total(ghosts, count).sqrt() * (MAX_CANCELLATION / math.sqrt(max(1, len(ghosts))))
    # Gradients whose terms nearly cancel are formed, so that the norm is that of the very numbers that are added up.
    cancelling = {parameter: magnitudes(uses[parameter]) > limit for parameter in unformed}
    squares = sum((ghosts[parameter].where(~cancelling[parameter], 0.0) for parameter in ghosts), _total({}, count))
    formed = {parameter: cancelling.get(parameter, torch.ones(count)).nonzero()[:, 0].tolist() for parameter in uses}
    factors = torch.zeros_like(squares)
    for first in range(0, count, FORMED_AT_ONCE):
        last = min(first + FORMED_AT_ONCE, count)
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
        add_weighted(uses[parameter], kept, total[parameter])
    return squares.sqrt()


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
    sums = squares.clone()
    for rows, formed in gradients.values():
        places = slice(None) if len(rows) == len(squares) else [row - first for row in rows]
        sums[places] += formed_norms(formed)
    return sums


def _total(squares: Mapping[torch.Tensor, torch.Tensor], records: int) -> torch.Tensor:
    return sum(squares.values(), torch.zeros(records, dtype=torch.float64))
