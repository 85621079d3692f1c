"""Rules for how each type of layer uses its parameters. Dispatch is by exact type: a subclass may compute something
else."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from peft.tuners.lora.layer import Embedding as LoraEmbedding
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F
from transformers.models.gemma3.modeling_gemma3 import Gemma3TextScaledWordEmbedding
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.pytorch_utils import Conv1D

from atdp_cli.training.clip.ghost_norm import EmbeddingUse, InstantiatedUse, LinearUse, Use


class UnknownLayerError(Exception):
    """A layer with trainable parameters for which this engine has no rule; the message names its type."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of a layer for a batch.

    Attributes:
        inputs: Its positional and named arguments.
        gradient: Of the loss with respect to its output, shape [windows, T, …] or [windows·T, …].
        windows: Rows of the batch.
        width: T, its columns.
        records: R; a record's rows lie side by side, equally many for each.
    """

    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    gradient: torch.Tensor
    windows: int
    width: int
    records: int

    def by_record(self, values: torch.Tensor, last: int) -> torch.Tensor:
        """Values of shape [windows, T, …] or [windows·T, …] as [R, positions, …], the last `last` axes kept.

        Raises:
            UnknownLayerError: The first axis is neither, so the values cannot be assigned to records.
        """
        tail = values.shape[values.dim() - last :]
        first = values.shape[0]
        # A single axis never counts as that of windows: as many positions of one window would look the same.
        if first == (self.windows if values.dim() > last + 1 else self.windows * self.width):
            return values.reshape(self.records, -1, *tail)
        raise UnknownLayerError(f"an input of shape {list(values.shape)} for {self.windows} windows")


ParameterUses = Iterator[tuple[torch.Tensor, Use]]

Rule = Callable[[Any, Call], ParameterUses]
"""(layer, call) → the layer's parameters, each with its use."""


def _linear(layer: nn.Linear, call: Call) -> ParameterUses:
    gradient = call.by_record(call.gradient, 1)
    yield layer.weight, LinearUse(gradient, call.by_record(call.inputs[0], 1))
    if layer.bias is not None:
        yield layer.bias, _summed(gradient)


def _conv1d(layer: Any, call: Call) -> ParameterUses:
    gradient = call.by_record(call.gradient, 1)
    yield layer.weight, LinearUse(call.by_record(call.inputs[0], 1), gradient)
    yield layer.bias, _summed(gradient)


def _embedding(layer: nn.Embedding, call: Call) -> ParameterUses:
    yield layer.weight, _lookup(layer, call, call.inputs[0], call.gradient)


def _scaled_embedding(layer: Any, call: Call) -> ParameterUses:
    yield layer.weight, _lookup(layer, call, call.inputs[0], call.gradient * layer.embed_scale.to(layer.weight.dtype))


def _opt_positions(layer: Any, call: Call) -> ParameterUses:
    positions = call.named.get("position_ids")
    if positions is None:
        raise UnknownLayerError("OPT positions without position_ids")
    yield layer.weight, _lookup(layer, call, positions + layer.offset, call.gradient)


def _lora_embedding(layer: Any, call: Call) -> ParameterUses:
    """LoRA of an embedding: output = base output + scaling·A[:, x]ᵀ·Bᵀ, with A [r, m] and B [n, r]."""
    ids, gradient = call.by_record(call.inputs[0], 0), call.by_record(call.gradient, 1)
    base = layer.get_base_layer()
    _refuse_unusual(base)
    scale = getattr(base, "embed_scale", 1.0)
    for adapter in layer.active_adapters:
        if adapter not in layer.lora_embedding_A:
            continue
        if adapter in layer.lora_variant:
            raise UnknownLayerError("a variant of LoRA")
        a, b = layer.lora_embedding_A[adapter], layer.lora_embedding_B[adapter]
        scaled = _at_least_fp32(gradient) * (layer.scaling[adapter] * scale)
        yield b, LinearUse(scaled, F.embedding(ids, a.T))
        rows = ids if base.padding_idx is None else ids.masked_fill(ids == base.padding_idx, -1)
        yield a, EmbeddingUse(rows, scaled @ b.to(scaled.dtype), transposed=True)


def _layer_norm(layer: nn.LayerNorm, call: Call) -> ParameterUses:
    shape = list(layer.normalized_shape)
    gradient = call.by_record(call.gradient, len(shape))
    if layer.weight is not None:
        unit = F.layer_norm(_at_least_fp32(call.inputs[0]), shape, eps=layer.eps)
        yield layer.weight, _summed(gradient * call.by_record(unit, len(shape)))
    if layer.bias is not None:
        yield layer.bias, _summed(gradient)


def _scaled_by_weight(layer: nn.Module, call: Call, *, neutral: float) -> ParameterUses:
    """Layers weight ⊙ x̂, or (1 + weight) ⊙ x̂: with the neutral weight, 1 or 0, their output is x̂."""
    weight = layer.get_parameter("weight")
    all_neutral = torch.full(weight.shape, neutral, dtype=weight.dtype, device=weight.device)
    unit = functional_call(layer, {"weight": all_neutral}, call.inputs)
    gradient = _at_least_fp32(call.by_record(call.gradient, 1))
    yield weight, _summed(gradient * call.by_record(unit, 1))


def _summed(values: torch.Tensor) -> InstantiatedUse:
    """The sum over each record's positions, in fp32 at least: in half precision long sums stop growing."""
    return InstantiatedUse(values.sum(1, dtype=torch.promote_types(values.dtype, torch.float32)))


def _at_least_fp32(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


_by_weight: Rule = partial(_scaled_by_weight, neutral=1.0)

_by_one_plus_weight: Rule = partial(_scaled_by_weight, neutral=0.0)


def _lookup(layer: nn.Embedding, call: Call, ids: torch.Tensor, gradient: torch.Tensor) -> EmbeddingUse:
    _refuse_unusual(layer)
    rows = call.by_record(ids, 0)
    if layer.padding_idx is not None:
        rows = rows.masked_fill(rows == layer.padding_idx, -1)
    return EmbeddingUse(rows, call.by_record(gradient, 1))


def _t5_bias(layer: Any, call: Call) -> ParameterUses:
    """The inputs are the buckets, shape [queries, keys]; the gradient has shape [windows, heads, queries, keys]."""
    vectors = call.by_record(call.gradient.permute(0, 2, 3, 1), 1)
    rows = call.inputs[0].flatten().repeat(vectors.shape[1] // call.inputs[0].numel())
    yield layer.relative_attention_bias.weight, EmbeddingUse(rows.expand(call.records, -1), vectors)


def _refuse_unusual(layer: nn.Embedding) -> None:
    if layer.scale_grad_by_freq or layer.max_norm is not None or layer.sparse:
        raise UnknownLayerError("an embedding with scale_grad_by_freq, max_norm or sparse gradients")


_RULES: Mapping[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear: _linear,
    Conv1D: _conv1d,
    nn.Embedding: _embedding,
    Gemma3TextScaledWordEmbedding: _scaled_embedding,
    OPTLearnedPositionalEmbedding: _opt_positions,
    LoraEmbedding: _lora_embedding,
    nn.LayerNorm: _layer_norm,
    nn.RMSNorm: _by_weight,
    T5Attention: _t5_bias,
}


# Each architecture has its own class for these; naming them here saves importing all the modules.
_RULES_BY_NAME: Mapping[str, Rule] = {
    "llama.modeling_llama.LlamaRMSNorm": _by_weight,
    "mistral.modeling_mistral.MistralRMSNorm": _by_weight,
    "qwen2.modeling_qwen2.Qwen2RMSNorm": _by_weight,
    "qwen3.modeling_qwen3.Qwen3RMSNorm": _by_weight,
    "phi3.modeling_phi3.Phi3RMSNorm": _by_weight,
    "olmo2.modeling_olmo2.Olmo2RMSNorm": _by_weight,
    "smollm3.modeling_smollm3.SmolLM3RMSNorm": _by_weight,
    "granite.modeling_granite.GraniteRMSNorm": _by_weight,
    "t5.modeling_t5.T5LayerNorm": _by_weight,
    "falcon.modeling_falcon.FalconLinear": _linear,
    "gemma.modeling_gemma.GemmaTextScaledWordEmbedding": _scaled_embedding,
    "gemma2.modeling_gemma2.Gemma2TextScaledWordEmbedding": _scaled_embedding,
    "gemma.modeling_gemma.GemmaRMSNorm": _by_one_plus_weight,
    "gemma2.modeling_gemma2.Gemma2RMSNorm": _by_one_plus_weight,
    "gemma3.modeling_gemma3.Gemma3RMSNorm": _by_one_plus_weight,
}


def rule_for(layer: nn.Module) -> Rule:
    """The rule of a layer's exact type.

    Raises:
        UnknownLayerError: There is none.
    """
    layer_type = type(layer)
    name = f"{layer_type.__module__}.{layer_type.__qualname__}"
    rule = _RULES.get(layer_type) or _RULES_BY_NAME.get(name.removeprefix("transformers.models."))
    if rule is None:
        raise UnknownLayerError(f"a layer of type {layer_type.__qualname__}")
    return rule


def trained_layers(model: nn.Module) -> list[tuple[nn.Module, Rule]]:
    """The layers that own trainable parameters, each with its rule.

    Raises:
        UnknownLayerError: One of them has none.
    """
    layers: list[tuple[nn.Module, Rule]] = []
    claimed: set[int] = set()
    for layer in model.modules():
        owned = [parameter for parameter in _owned(layer) if parameter.requires_grad and id(parameter) not in claimed]
        if not owned:
            continue
        layers.append((layer, rule_for(layer)))
        if type(layer) in (LoraEmbedding, T5Attention):
            claimed.update(id(parameter) for parameter in owned)
    return layers


def _owned(layer: nn.Module) -> Iterator[nn.Parameter]:
    yield from layer.parameters(recurse=False)
    if type(layer) is T5Attention and layer.has_relative_attention_bias:
        yield layer.get_parameter("relative_attention_bias.weight")
    if isinstance(layer, LoraEmbedding):
        # Its matrices are in ParameterDicts, which have no forward of their own.
        for matrices in (layer.lora_embedding_A, layer.lora_embedding_B):
            yield from matrices.parameters()
