"""The loop engine: each record clipped as one, alone, whatever it comes with."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from atdp_cli.model.windows import Window
from atdp_cli.training.clip.engine import ROUNDING_MARGIN, clip_factor, trainable
from atdp_cli.training.clip.per_record import clipped_sum
from atdp_cli.training.examples import Example

CLIP = 0.05
VOCABULARY = 50


def gpt2(*, tied: bool = True) -> Any:
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, tie_word_embeddings=tied, **shape)).eval()


def llama() -> Any:
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=32, **shape)).eval()


def example(*lengths: int, seed: int = 0, scale: float = 1.0) -> Example:
    """A record with one window for each length."""
    draw = np.random.default_rng(seed)
    windows, weights = [], []
    for length in lengths:
        nothing = np.zeros(length, dtype=np.bool_)
        windows.append(Window(0, draw.integers(0, VOCABULARY, length), nothing, nothing, nothing))
        values = (scale * draw.uniform(0.1, 1, length)).astype(np.float32)
        values[0] = 0
        weights.append(values)
    return Example(tuple(windows), tuple(weights))


def by_hand(model: Any, record: Example) -> list[torch.Tensor]:
    """The record's gradient in fp64, through `backward` and all windows in one loss."""
    double = copy.deepcopy(model).double()
    loss = torch.zeros((), dtype=torch.float64)
    for window, weights in zip(record.windows, record.weights, strict=True):
        ids = torch.from_numpy(window.token_ids)
        log_p = F.log_softmax(double(ids[None]).logits[0, :-1], dim=-1)
        picked = log_p[torch.arange(len(ids) - 1), ids[1:]]
        loss = loss - (picked * torch.from_numpy(weights[1:]).double()).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return [parameter.grad for parameter in double.parameters() if parameter.requires_grad]


def norm(parts: Sequence[torch.Tensor]) -> float:
    return math.sqrt(sum(float(part.detach().double().square().sum()) for part in parts))


def distance(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> float:
    return norm([a.detach().double() - b.detach().double() for a, b in zip(first, second, strict=True)])


@pytest.mark.parametrize("build", [gpt2, lambda: gpt2(tied=False), llama], ids=["tied", "untied", "llama"])
def test_norms_and_sum_agree_with_fp64_by_hand(build: Any) -> None:
    model = build()
    records = [example(9, seed=1), example(12, 12, 5, seed=2), example(2, seed=3), example(7, seed=4, scale=1e-4)]
    actual = clipped_sum(model, records, CLIP)
    gradients = [by_hand(model, record) for record in records]
    norms = [norm(gradient) for gradient in gradients]
    assert actual.norms.tolist() == pytest.approx(norms, rel=1e-5)
    assert norms[3] < CLIP < norms[0]
    bound = CLIP * (1 - ROUNDING_MARGIN)
    expected = [
        sum(part * min(1.0, bound / length) for part, length in zip(parts, norms, strict=True))
        for parts in zip(*gradients, strict=True)
    ]
    assert distance(actual.gradient, expected) <= 1e-5 * norm(expected)


def test_a_record_of_several_windows_is_clipped_as_one() -> None:
    model = gpt2()
    alone = clipped_sum(model, [example(12, 12, 12, 12, seed=5)], CLIP)
    assert norm(alone.gradient) <= CLIP
    windows = example(12, 12, 12, 12, seed=5)
    apart = [Example((w,), (v,)) for w, v in zip(windows.windows, windows.weights, strict=True)]
    assert norm(clipped_sum(model, apart, CLIP).gradient) > 1.5 * CLIP


def test_no_record_adds_more_than_the_clip_norm() -> None:
    model = llama()
    for seed in range(8):
        record = example(2 + 3 * seed, seed=seed, scale=10.0**seed)
        assert norm(clipped_sum(model, [record], CLIP).gradient) <= CLIP


def test_a_record_does_not_depend_on_those_beside_it() -> None:
    model = gpt2()
    record = example(10, seed=1)
    others = [example(20, seed=2), example(4, seed=3)]
    alone = clipped_sum(model, [record], CLIP)
    beside = clipped_sum(model, [*others, record], CLIP)
    without = clipped_sum(model, others, CLIP)
    assert beside.norms[2] == alone.norms[0]
    assert distance(beside.gradient, without.gradient) <= CLIP * (1 + 1e-6)


def test_a_gradient_that_is_not_finite_adds_nothing() -> None:
    model = gpt2()
    bad = example(6, seed=1, scale=float("inf"))
    good = example(6, seed=2)
    actual = clipped_sum(model, [bad, good], CLIP)
    assert not math.isfinite(actual.norms[0])
    assert distance(actual.gradient, clipped_sum(model, [good], CLIP).gradient) == 0


def test_empty_records_and_empty_samples_add_nothing() -> None:
    model = gpt2()
    for records in ([], [Example((), ())]):
        actual = clipped_sum(model, records, CLIP)
        assert norm(actual.gradient) == 0
        assert actual.norms.tolist() == [0.0] * len(records)


def test_the_model_is_left_as_it_was() -> None:
    model = gpt2()
    before = [parameter.clone() for parameter in trainable(model)]
    clipped_sum(model, [example(8)], CLIP)
    assert all(torch.equal(old, new) for old, new in zip(before, trainable(model), strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("length", [1e-12, 0.0999, 0.1, 0.11, 1e9])
def test_the_factor_leaves_room_for_rounding(length: float) -> None:
    factor = clip_factor(length, 0.1)
    assert factor <= 1
    assert factor * length <= 0.1 * (1 - ROUNDING_MARGIN) * (1 + 1e-15)
