"""One forward and one backward pass that keep what every trained layer was given and what came back."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.models.t5.modeling_t5 import T5Attention

from atdp_cli.training.clipping.batches import PhysicalBatch
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.forward import batch_logits, loss_gradient
from atdp_cli.training.clipping.ghost_norm import Use
from atdp_cli.training.clipping.layer_rules import Call, Rule, UnknownLayerError
from atdp_cli.training.distributed.fsdp import reshard

BiasHook = Callable[[torch.Tensor, torch.Tensor], None]
"""Takes the buckets, shape [queries, keys], and the bias of each window, shape [windows, heads, queries, keys]."""


@contextmanager
def bias_of_each_window(attention: T5Attention, windows: int, start: torch.Tensor, keep: BiasHook) -> Iterator[None]:
    """While this lasts, `attention` computes its bias once for each window, so that gradients stay apart.

    Args:
        attention: A layer with a relative position bias.
        windows: Rows of the batch.
        start: A zero that takes gradients.
        keep: Told of each bias.
    """
    original = attention.compute_bias
    buckets: list[torch.Tensor] = []

    def remember(_: Any, inputs: tuple[Any, ...]) -> None:
        buckets.append(inputs[0])

    def compute(*arguments: Any, **named: Any) -> torch.Tensor:
        bias: torch.Tensor = original(*arguments, **named)
        apart = bias.detach().repeat(windows, 1, 1, 1) + start.to(bias.dtype)
        keep(buckets[-1], apart)
        return apart

    handle = attention.relative_attention_bias.register_forward_pre_hook(remember)
    attention.compute_bias = compute  # type: ignore[method-assign, unused-ignore]
    try:
        yield
    finally:
        del attention.compute_bias
        handle.remove()


Uses = dict[torch.Tensor, list[Use]]
"""How each parameter was used; one that layers share has several uses."""


@dataclass(slots=True)
class _Seen:
    """A call as the hooks see it."""

    layer: nn.Module
    rule: Rule
    inputs: tuple[Any, ...]
    named: dict[str, Any]
    gradient: torch.Tensor | None = None


@dataclass(slots=True)
class _Tape:
    """The calls of one forward pass; closed while gradients flow back, when checkpointed layers run again."""

    start: torch.Tensor
    calls: list[_Seen] = field(default_factory=list)
    open: bool = True


def capture(
    model: PreTrainedModel, layers: Sequence[tuple[nn.Module, Rule]], batch: PhysicalBatch, *, positions: bool
) -> Uses:
    """Run a batch forth and back; no parameter's own gradient is computed.

    Args:
        layers: From `trained_layers`.
        positions: See `batch_logits`.

    Raises:
        UnknownLayerError: A layer was not given one row for each window.
    """
    trained = set(trainable(model))
    tape = _Tape(start=torch.zeros((), device=model.device, requires_grad=True))
    with _frozen(model), _hooked(layers, tape, batch.windows), torch.enable_grad():
        logits = batch_logits(model, batch, positions=positions)
        tape.open = False
        torch.autograd.backward(logits, loss_gradient(logits, batch))
    reshard(model)
    return _uses(tape.calls, batch, trained)


@contextmanager
def _frozen(model: PreTrainedModel) -> Iterator[None]:
    """Trainable parameters take no gradient meanwhile."""
    parameters = trainable(model)
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


@contextmanager
def _hooked(layers: Sequence[tuple[nn.Module, Rule]], tape: _Tape, windows: int) -> Iterator[None]:
    with ExitStack() as stack:
        for layer, rule in layers:
            if type(layer) is T5Attention:
                stack.enter_context(bias_of_each_window(layer, windows, tape.start, _keeper(layer, rule, tape)))
                continue
            handle = layer.register_forward_hook(_hook(rule, tape), with_kwargs=True)
            stack.callback(handle.remove)
        yield


def _keeper(layer: nn.Module, rule: Rule, tape: _Tape) -> BiasHook:
    def keep(buckets: torch.Tensor, bias: torch.Tensor) -> None:
        if tape.open:
            _follow(tape, _Seen(layer, rule, (buckets,), {}), bias)

    return keep


def _follow(tape: _Tape, call: _Seen, output: torch.Tensor) -> None:
    """Put a call on the tape, and its output's gradient into it when that comes."""

    def keep(gradient: torch.Tensor) -> None:
        call.gradient = gradient

    tape.calls.append(call)
    output.register_hook(keep)  # type: ignore[no-untyped-call]


def _hook(rule: Rule, tape: _Tape) -> Any:
    def hook(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        if not isinstance(output, torch.Tensor):
            raise UnknownLayerError(f"a layer of type {type(layer).__qualname__} that does not return a tensor")
        if not output.requires_grad:
            # Where no gradient would flow this far: adding nothing makes one flow.
            output = output + tape.start.to(output.dtype)
        if not tape.open:
            return output
        call = _Seen(layer, rule, tuple(_kept(value) for value in inputs), {k: _kept(v) for k, v in named.items()})
        _follow(tape, call, output)
        return output

    return hook


def _kept(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _uses(calls: Sequence[_Seen], batch: PhysicalBatch, trained: Container[torch.Tensor]) -> Uses:
    found: Uses = {}
    width = batch.input_ids.shape[1]
    with torch.no_grad():
        for seen in calls:
            if seen.gradient is None:
                continue
            call = Call(seen.inputs, seen.named, seen.gradient, batch.windows, width, len(batch.records))
            for parameter, use in seen.rule(seen.layer, call):
                if parameter in trained:
                    found.setdefault(parameter, []).append(use)
    return found
