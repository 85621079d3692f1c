"""Tiny causal language models with random weights, and records for them."""

import copy
import itertools
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import peft
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

from atdp_cli.model.windows import Window
from atdp_cli.training.clip.engine import ClippedSum
from atdp_cli.training.clip.per_record import clipped_sum as loop
from atdp_cli.training.examples import Example
from tests.training.test_clipping import distance, norm

VOCABULARY = 60
CONTEXT = 32
EOS = 1
OWN_PAD = 0

_LLAMA = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
}
_GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": CONTEXT}
_NEOX = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": CONTEXT,
}
_NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-2": ("GPT2", {**_GPT, **_NO_DROPOUT}),
    "Llama": ("Llama", _LLAMA),
    "Qwen2": ("Qwen2", _LLAMA),
    "Qwen3": ("Qwen3", _LLAMA),
    "GPT-NeoX": ("GPTNeoX", _NEOX),
    "OPT": (
        "OPT",
        {
            "hidden_size": 16,
            "ffn_dim": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": CONTEXT,
            "word_embed_proj_dim": 16,
            "dropout": 0.0,
        },
    ),
    "Gemma-3": ("Gemma3Text", {**_LLAMA, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}),
    "Phi": ("Phi", {**_NEOX, **_NO_DROPOUT}),
    "Mistral": ("Mistral", {**_LLAMA, "sliding_window": 4}),
    "T5": (
        "T5",
        {
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 24,
            "num_layers": 2,
            "num_heads": 2,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 6,
            "dropout_rate": 0.0,
            "decoder_start_token_id": OWN_PAD,
        },
    ),
    "GPT-Neo": (
        "GPTNeo",
        {
            "hidden_size": 16,
            "num_layers": 2,
            "num_heads": 2,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": CONTEXT,
            "resid_dropout": 0.0,
            "embed_dropout": 0.0,
            "attention_dropout": 0.0,
        },
    ),
    "GPT-J": ("GPTJ", {**_GPT, **_NO_DROPOUT, "rotary_dim": 4}),
    "Bloom": ("Bloom", {"hidden_size": 16, "n_layer": 2, "n_head": 2}),
    "Phi-3": ("Phi3", {key: value for key, value in _LLAMA.items() if key != "head_dim"}),
    "OLMo-2": ("Olmo2", {key: value for key, value in _LLAMA.items() if key != "head_dim"}),
    "Gemma-2": ("Gemma2", {**_LLAMA, "sliding_window": 4}),
    "Granite": ("Granite", {key: value for key, value in _LLAMA.items() if key != "head_dim"}),
    "Falcon": ("Falcon", {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}),
    "Mixtral": ("Mixtral", {**_LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "Mamba": ("Mamba", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "time_step_rank": 2}),
}

ISSUE = ("GPT-2", "Llama", "Qwen2", "Qwen3", "GPT-NeoX", "OPT", "Gemma-3", "Phi", "Mistral", "T5")
"""The architectures that the ghost engine has to take."""

Target = Literal["full", "attention", "mlp", "embedding", "all"]


def build(
    architecture: str,
    *,
    tied: bool = True,
    target: Target = "full",
    pad: int | None = None,
    attention: str = "sdpa",
    dtype: torch.dtype = torch.float32,
) -> Any:
    """A model in eval mode, its weights large enough that no gradient vanishes.

    Args:
        target: "full", or which layers get a LoRA adapter.
        pad: The pad token, which is also the embedding's `padding_idx`.
    """
    name, shape = SHAPES[architecture]
    given = dict(shape)
    if pad is not None or architecture in ("Phi-3", "Gemma-2"):
        given["pad_token_id"] = pad
    config = getattr(transformers, f"{name}Config")(
        vocab_size=VOCABULARY, bos_token_id=EOS, eos_token_id=EOS, tie_word_embeddings=tied, **given
    )
    if architecture in ISSUE:
        config._attn_implementation = attention
    if architecture == "Mixtral":
        config._experts_implementation = "eager"  # the others know no fp64
    torch.manual_seed(0)
    name = name.removesuffix("Text")
    kind = {"GPT2": "GPT2LMHeadModel", "T5": "T5ForConditionalGeneration"}.get(name, f"{name}ForCausalLM")
    model = getattr(transformers, kind)(config)
    draw_weights(model)
    model.get_input_embeddings().padding_idx = pad
    if target != "full":
        model = adapted(model, target)
    return model.to(dtype).eval()


@torch.no_grad()
def draw_weights(model: nn.Module) -> None:
    """Every parameter gets values of its own, also those that start at 0 or 1."""
    draw = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=draw))


def targets(model: nn.Module, target: Target) -> list[str]:
    """The full names of the layers that an adapter is put on."""
    linear = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear | Conv1D)]
    names = [name for name in linear if "head" not in name]
    attention = [name for name in names if "attn" in name or "attention" in name.lower()]
    table = model.get_input_embeddings().weight  # type: ignore[operator]
    embeddings = [name for name, layer in model.named_modules() if getattr(layer, "weight", None) is table]
    # T5 has its table in three places, and only the two that are not at the top are called.
    embedding = [name for name in embeddings if name != "shared" and "head" not in name and name != "embed_out"]
    mlp = [name for name in names if name not in attention and "embed" not in name and "mixer.out" not in name]
    actual = {"full": [], "attention": attention, "mlp": mlp, "embedding": embedding}
    actual["all"] = [*attention, *mlp, *embedding]
    return actual[target]


def adapted(model: Any, target: Target, **settings: Any) -> Any:
    """The model with LoRA of rank 2, none of whose matrices is 0."""
    conv1d = any(isinstance(layer, Conv1D) for layer in model.modules())
    config = peft.LoraConfig(
        r=2,
        target_modules=targets(model, target),
        fan_in_fan_out=conv1d and target in ("attention", "mlp"),
        task_type="SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM",
        **settings,
    )
    with warnings.catch_warnings():
        # About tied embeddings, which matter to merging alone, and about names that change in transformers 6.
        warnings.simplefilter("ignore")
        actual = peft.get_peft_model(model, config)
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in actual.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=draw))
    return actual


def record(
    *lengths: int,
    seed: int = 0,
    repeated: bool = False,
    cancelling: bool = False,
    scale: float = 1.0,
    architecture: str = "",
) -> Example:
    """A record with one window for each length.

    Args:
        repeated: Three tokens make up the record.
        architecture: For one that has an encoder, windows have something for it to read.
        cancelling: Weights of alternating signs, so that what its positions add to the gradient nearly cancels.
    """
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, VOCABULARY, 3) if repeated else np.arange(VOCABULARY)
    windows, weights = [], []
    for length in lengths:
        ids = draw.choice(tokens, length)
        ids[-1] = EOS
        nothing = np.zeros(length, dtype=np.bool_)
        source = draw.choice(tokens, length + 2) if architecture == "T5" else None
        windows.append(Window(seed, ids, nothing, nothing, nothing, source))
        values = scale * draw.uniform(0.1, 1, length)
        if cancelling:
            values *= (-0.9) ** np.arange(length) / 0.9
        values[0] = 0
        weights.append(values.astype(np.float32))
    return Example(tuple(windows), tuple(weights))


def relative(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    return distance(actual, expected) / norm(expected)


def oracle(model: Any, records: Sequence[Example], clip_norm: float) -> ClippedSum:
    """`per-record` in fp64."""
    return loop(copy.deepcopy(model).double(), records, clip_norm)


def norm_error(actual: ClippedSum, expected: ClippedSum) -> float:
    finite = torch.isfinite(expected.norms) & (expected.norms > 0)
    return float(((actual.norms - expected.norms).abs() / expected.norms)[finite].max())


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Asserts that the block leaves parameters, flags, modes and hooks as they were."""
    before = state(model)
    values = [parameter.detach().clone() for parameter in model.parameters()]
    yield
    assert state(model) == before
    assert all(torch.equal(old, new) for old, new in zip(values, model.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())


def state(model: Any) -> list[Any]:
    flags = [(parameter.requires_grad, sorted(vars(parameter))) for parameter in model.parameters()]
    hooks = [
        (layer.training, len(layer._forward_hooks), len(layer._forward_pre_hooks), len(layer._backward_hooks))
        for layer in model.modules()
    ]
    return [flags, hooks]


def pairwise(axes: dict[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Cases in which every two values of every two axes meet; greedy, and the same each time for one seed."""
    names = list(axes)
    missing = {
        (a, i, b, j)
        for a, b in itertools.combinations(range(len(names)), 2)
        for i in range(len(axes[names[a]]))
        for j in range(len(axes[names[b]]))
    }
    cases = []
    draw = random.Random(seed)
    while missing:
        a, i, b, j = min(missing)
        chosen = {a: i, b: j}
        for axis in range(len(names)):
            if axis not in chosen:
                values = draw.sample(range(len(axes[names[axis]])), len(axes[names[axis]]))
                chosen[axis] = max(values, key=_gain(chosen, axis, missing))
        missing -= {(a, chosen[a], b, chosen[b]) for a, b in itertools.combinations(range(len(names)), 2)}
        cases.append({name: axes[name][chosen[axis]] for axis, name in enumerate(names)})
    return cases


def _gain(chosen: dict[int, int], axis: int, missing: set[tuple[int, int, int, int]]) -> Callable[[int], int]:
    def gain(value: int) -> int:
        return sum(
            ((other, at, axis, value) if other < axis else (axis, value, other, at)) in missing
            for other, at in chosen.items()
        )

    return gain
