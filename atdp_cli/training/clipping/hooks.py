"""One forward and one backward pass that record every trained layer's inputs and output gradients."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.models.t5.modeling_t5 import T5Attention

from atdp_cli.model.forward import logits_of
from atdp_cli.training.clipping.batches import PhysicalBatch
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.forward import loss_gradient
from atdp_cli.training.clipping.ghost_norm import Use
from atdp_cli.training.clipping.layer_rules import Call, Rule, UnknownLayerError
from atdp_cli.training.distributed.fsdp import reshard
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
            call = Call(inputs, named, gradient, batch.windows, batch.input_ids.shape[1], len(batch.records))
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
        logits = logits_of(model, batch, positions=positions)
        tape.recording = False
        torch.autograd.backward(logits, loss_gradient(logits, batch))
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
    """While this lasts, `attention` computes its relative position bias once for each window, and records it.

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
