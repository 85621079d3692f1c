"""Tokens that are pulled to a reference: what their gradient is, and that every engine clips it alike."""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.model.windows import Window
from atdp_cli.training.clip import ghost, opacus
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.clip.per_record import clipped_sum as loop
from atdp_cli.training.clip.per_record import record_gradient
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.objectives import Anchored, Uniform, Weighted
from tests.training.clipping.models import VOCABULARY, build, norm_error, oracle, record, relative, untouched
from tests.training.test_clipping import norm

TOLERANCE = 1e-5
CLIP = 0.05
ARCHITECTURES = ("GPT-2", "Llama", "T5")


def reference_of(model: Any, *, scale: float = 0.3) -> Any:
    """A model with the same vocabulary that says something else."""
    actual = copy.deepcopy(model)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in actual.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=draw))
    return actual.requires_grad_(False)


def anchored(example: Example, reference: Any, *, share: float = 0.5, seed: int = 0) -> Example:
    """The record with this share of its tokens pulled to the reference."""
    draw = np.random.default_rng(seed)
    masks = [draw.random(len(window.token_ids)) < share for window in example.windows]
    for mask in masks:
        mask[0] = False
    return replace(example, distilled=tuple(masks), teacher=reference)


def mixed(reference: Any, architecture: str) -> list[Example]:
    """Records of several lengths and windows; all, some or none of their tokens are anchored."""
    lengths = [(11,), (6, 6, 4), (12,), (9, 3), (10,), (5, 5, 5), (8, 8)]
    shares = [0.5, 0.5, 0.0, 0.5, 1.0, 1.0, 0.5]
    return [
        anchored(record(*sizes, seed=seed, architecture=architecture), reference, share=share, seed=seed)
        for seed, (sizes, share) in enumerate(zip(lengths, shares, strict=True))
    ]


def probabilities(model: Any, window: Window) -> torch.Tensor:
    """p of every token at every place but the first, in fp64; shape [T−1, V]."""
    ids = torch.from_numpy(window.token_ids)[None]
    with_encoder = {} if window.source is None else {"input_ids": torch.from_numpy(window.source)[None]}
    given = {**with_encoder, "decoder_input_ids": ids} if with_encoder else {"input_ids": ids}
    raised = model(**given).logits[0, :-1].exp()
    actual: torch.Tensor = raised / raised.sum(-1, keepdim=True)
    return actual


def loss_by_hand(model: Any, example: Example) -> torch.Tensor:
    """Σ weight·(Σ q·log(q/p) where a token is anchored, −log p of it elsewhere), token by token."""
    total = torch.zeros((), dtype=torch.float64)
    assert example.distilled is not None
    reference = copy.deepcopy(example.teacher).double()  # type: ignore[union-attr]
    for window, weights, mask in zip(example.windows, example.weights, example.distilled, strict=True):
        ours, theirs = probabilities(model, window), probabilities(reference, window)
        for place in range(1, len(window.token_ids)):
            true = int(window.token_ids[place])
            p, q = ours[place - 1], theirs[place - 1]
            said = q > 0
            divergence, surprise = (q[said] * (q[said] / p[said]).log()).sum(), -p[true].log()
            total = total + float(weights[place]) * (divergence if mask[place] else surprise)
    return total


def in_double(example: Example) -> Example:
    return replace(example, teacher=copy.deepcopy(example.teacher).double())  # type: ignore[union-attr]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_is_that_of_the_divergence(architecture: str, share: float) -> None:
    model = build(architecture)
    reference = reference_of(model)
    example = anchored(record(9, 7, seed=2, architecture=architecture), reference, share=share)
    double = copy.deepcopy(model).double()
    expected = torch.autograd.grad(loss_by_hand(double, example), trainable(double), materialize_grads=True)
    actual = record_gradient(double, in_double(example), trainable(double))
    assert relative(actual, expected) <= 1e-9
    assert relative(record_gradient(model, example, trainable(model)), expected) <= TOLERANCE


@pytest.mark.one_in(4)
@pytest.mark.parametrize("tokens", [1, 4096])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_engines_agree_with_the_loop(architecture: str, tied: bool, tokens: int) -> None:
    model = build(architecture, tied=tied)
    reference = reference_of(model)
    records = mixed(reference, architecture)
    positions = architecture == "GPT-2"
    engines = [ghost.clipped_sum] if tied or architecture == "T5" else [ghost.clipped_sum, opacus.clipped_sum]
    norms = oracle(model, records, 1e30).norms
    for clip_norm in (float(norms.min()) / 3, float(norms.median()), 1e30):
        expected = oracle(model, records, clip_norm)
        for engine in engines:
            with untouched(model), untouched(reference):
                actual = engine(model, records, clip_norm, tokens=tokens, positions=positions)
            assert norm_error(actual, expected) <= TOLERANCE
            assert relative(actual.gradient, expected.gradient) <= TOLERANCE


LLAMA = build("Llama", tied=False)
SHAPES = st.lists(
    st.tuples(st.lists(st.integers(2, 14), min_size=1, max_size=3), st.sampled_from([0.0, 0.3, 1.0])),
    min_size=1,
    max_size=5,
)


@pytest.mark.ci
@settings(max_examples=25, deadline=None)
@given(SHAPES, st.integers(0, 1000), st.integers(1, 100))
def test_any_mixture_of_records_agrees_with_the_loop(
    shapes: list[tuple[list[int], float]], seed: int, tokens: int
) -> None:
    reference = reference_of(LLAMA)
    records = [
        anchored(record(*lengths, seed=seed + row), reference, share=share, seed=seed + row)
        for row, (lengths, share) in enumerate(shapes)
    ]
    expected = oracle(LLAMA, records, CLIP)
    for engine in (ghost, opacus):
        actual = engine.clipped_sum(LLAMA, records, CLIP, tokens=tokens, positions=False)
        assert norm_error(actual, expected) <= TOLERANCE
        assert relative(actual.gradient, expected.gradient) <= TOLERANCE


def windows_of(*lengths: int, share: float, seed: int = 0) -> tuple[Window, ...]:
    """A record's windows with this share of its tokens sensitive, and some function words and placeholders."""
    draw = np.random.default_rng(seed)
    actual = []
    for length in lengths:
        sensitive, function, ignored = (draw.random(length) < part for part in (share, 0.3, 0.1))
        actual.append(Window(0, draw.integers(0, 60, length), sensitive, function, ignored))
    return tuple(actual)


def test_a_record_without_sensitive_tokens_is_weighed_as_ever() -> None:
    model = build("GPT-2")
    windows = windows_of(9, 7, share=0.0)
    pulled = make_example(windows, Anchored(), reference=reference_of(model))
    weighed = make_example(windows, Weighted(unflagged_weight=0.2))
    assert all(np.array_equal(a, b) for a, b in zip(pulled.weights, weighed.weights, strict=True))
    records = [[example, example] for example in (pulled, weighed)]
    sums = [ghost.clipped_sum(model, record, CLIP, tokens=4096, positions=True) for record in records]
    assert norm(sums[0].gradient) > 0
    assert all(torch.equal(a, b) for a, b in zip(sums[0].gradient, sums[1].gradient, strict=True))


def test_the_targets_that_are_sensitive_are_anchored() -> None:
    model = build("GPT-2")
    windows = windows_of(9, 7, share=0.5, seed=3)
    actual = make_example(windows, Anchored(), reference=model)
    assert actual.distilled is not None
    for window, weights, mask in zip(windows, actual.weights, actual.distilled, strict=True):
        assert mask.tolist() == (window.sensitive & window.targets).tolist()
        assert mask.any()
        assert (weights[mask] == 1).all()
        assert (weights[window.targets & ~window.sensitive & window.function] == 1).all()
        assert (weights[window.targets & ~window.sensitive & ~window.function] == np.float32(0.2)).all()
        assert (weights[~window.targets] == 0).all()


ENDING = 5
"""Which token of a record is anchored below; its last."""


def with_bias(reference: Any, bias: torch.Tensor) -> Any:
    """The reference with something added to its logits."""
    actual = copy.deepcopy(reference)
    actual.lm_head.register_forward_hook(lambda _layer, _inputs, logits: logits + bias.to(logits))
    return actual


def ending(reference: Any) -> tuple[Example, int]:
    """A record whose last token is all that counts, and that token."""
    plain = record(ENDING + 1, seed=1)
    plain.weights[0][:-1] = 0
    example = anchored(plain, reference, share=1.0)
    return example, int(plain.windows[0].token_ids[-1])


def test_a_reference_that_says_no_number_counts_only_where_it_is_asked() -> None:
    example, _ = ending(reference_of(LLAMA))
    broken = replace(example, teacher=with_bias(example.teacher, torch.full((VOCABULARY,), torch.nan)))
    unasked = replace(broken, distilled=(np.zeros(ENDING + 1, dtype=np.bool_),))
    own = replace(example, distilled=None, teacher=None)
    for engine in (ghost, opacus):
        actual = engine.clipped_sum(LLAMA, [broken, unasked], CLIP, tokens=99, positions=False)
        assert torch.isfinite(actual.norms).tolist() == [False, True]
        assert relative(actual.gradient, oracle(LLAMA, [own], CLIP).gradient) <= TOLERANCE
    assert not torch.isfinite(loop(LLAMA, [broken], CLIP).norms).any()


def test_anchors_and_their_reference_go_together() -> None:
    model = build("Llama")
    example = record(5)
    with pytest.raises(ValueError, match="A teacher goes with distilled tokens"):
        replace(example, teacher=model)
    to_the_start = replace(example, distilled=(np.arange(5) > 2,))
    for engine in (loop, partial(ghost.clipped_sum, tokens=64, positions=False)):
        with pytest.raises(ValueError, match="the batch has no teacher"):
            engine(model, [to_the_start], CLIP)
    with pytest.raises(ValueError, match="needs a reference"):
        make_example(example.windows, Anchored())
    assert make_example(example.windows, Uniform(), reference=model).teacher is None
