"""Tokens that are pulled to a reference: what their gradient is, and that every engine clips it alike."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.model.windows import Window
from atdp_cli.training.clipping import bookkeeping, opacus
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.loop import clipped_sum as loop
from atdp_cli.training.clipping.loop import record_gradient
from atdp_cli.training.objective import Example, make_example
from atdp_cli.training.recipe import Anchored, Uniform, Weighted
from tests.training.clipping.models import build, norm_error, oracle, record, relative, untouched
from tests.training.test_clipping import distance, norm

TOLERANCE = 1e-5
CLIP = 0.05
ARCHITECTURES = ("GPT-2", "Llama", "T5")


def reference_of(model: Any, *, scale: float = 0.3) -> Any:
    """A model with the same vocabulary that says something else."""
    found = copy.deepcopy(model)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=draw))
    return found.requires_grad_(False)


def anchored(one: Example, reference: Any, *, share: float = 0.5, seed: int = 0) -> Example:
    """The record with this share of its tokens pulled to the reference."""
    draw = np.random.default_rng(seed)
    masks = [draw.random(len(window.token_ids)) < share for window in one.windows]
    for mask in masks:
        mask[0] = False
    return replace(one, anchored=tuple(masks), reference=reference)


def mixed(reference: Any, architecture: str) -> list[Example]:
    """Records of several lengths and windows; all, some or none of their tokens are anchored."""
    lengths = [(11,), (6, 6, 4), (12,), (9, 3), (10,), (5, 5, 5), (8, 8)]
    shares = [0.5, 0.5, 0.0, 0.5, 1.0, 1.0, 0.5]
    return [
        anchored(record(*one, seed=seed, architecture=architecture), reference, share=share, seed=seed)
        for seed, (one, share) in enumerate(zip(lengths, shares, strict=True))
    ]


def probabilities(model: Any, window: Window) -> torch.Tensor:
    """p of every token at every place but the first, in fp64; shape [T−1, V]."""
    ids = torch.from_numpy(window.token_ids)[None]
    with_encoder = {} if window.source is None else {"input_ids": torch.from_numpy(window.source)[None]}
    given = {**with_encoder, "decoder_input_ids": ids} if with_encoder else {"input_ids": ids}
    raised = model(**given).logits[0, :-1].exp()
    found: torch.Tensor = raised / raised.sum(-1, keepdim=True)
    return found


def loss_by_hand(model: Any, one: Example) -> torch.Tensor:
    """Σ weight·(Σ p_ref·log(p_ref/p) where a token is anchored, −log p of it elsewhere), token by token."""
    total = torch.zeros((), dtype=torch.float64)
    assert one.anchored is not None
    reference = copy.deepcopy(one.reference).double()  # type: ignore[union-attr]
    for window, weights, mask in zip(one.windows, one.weights, one.anchored, strict=True):
        ours, theirs = probabilities(model, window), probabilities(reference, window)
        for place in range(1, len(window.token_ids)):
            p, q = ours[place - 1], theirs[place - 1]
            divergence, surprise = (q * (q / p).log()).sum(), -p[int(window.token_ids[place])].log()
            total = total + float(weights[place]) * (divergence if mask[place] else surprise)
    return total


def in_double(one: Example) -> Example:
    return replace(one, reference=copy.deepcopy(one.reference).double())  # type: ignore[union-attr]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_is_that_of_the_divergence(architecture: str, share: float) -> None:
    model = build(architecture)
    reference = reference_of(model)
    one = anchored(record(9, 7, seed=2, architecture=architecture), reference, share=share)
    double = copy.deepcopy(model).double()
    expected = torch.autograd.grad(loss_by_hand(double, one), trainable(double), materialize_grads=True)
    found = record_gradient(double, in_double(one), trainable(double))
    assert relative(found, expected) <= 1e-9
    assert relative(record_gradient(model, one, trainable(model)), expected) <= TOLERANCE


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_is_the_slope_of_the_loss(architecture: str) -> None:
    """By finite differences, so that nothing of autograd is believed. Some layers round to fp32 in any model."""
    model = build(architecture).double()
    one = in_double(anchored(record(8, 5, seed=4, architecture=architecture), reference_of(model), seed=4))
    gradient = record_gradient(model, one, trainable(model))
    length = norm(gradient)
    draw = torch.Generator().manual_seed(5)
    for _ in range(3):
        aside = [torch.randn(part.shape, generator=draw, dtype=torch.float64) for part in gradient]
        way = [part / length + other / norm(aside) for part, other in zip(gradient, aside, strict=True)]
        slope = sum(float((part * step).sum()) for part, step in zip(gradient, way, strict=True))
        ends = [shifted_loss(model, one, way, step) for step in (-1e-3, 1e-3)]
        assert (ends[1] - ends[0]) / 2e-3 == pytest.approx(slope, rel=1e-4)


@torch.no_grad()
def shifted_loss(model: Any, one: Example, way: Sequence[torch.Tensor], step: float) -> float:
    other = copy.deepcopy(model)
    for parameter, part in zip(trainable(other), way, strict=True):
        parameter.add_(part, alpha=step)
    return float(loss_by_hand(other, one))


@pytest.mark.parametrize("tokens", [1, 4096])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_engines_agree_with_the_loop(architecture: str, tied: bool, tokens: int) -> None:
    model = build(architecture, tied=tied)
    reference = reference_of(model)
    records = mixed(reference, architecture)
    positions = architecture == "GPT-2"
    engines = (
        [bookkeeping.clipped_sum] if tied or architecture == "T5" else [bookkeeping.clipped_sum, opacus.clipped_sum]
    )
    norms = oracle(model, records, 1e30).norms
    for clip_norm in (float(norms.min()) / 3, float(norms.median()), 1e30):
        expected = oracle(model, records, clip_norm)
        for engine in engines:
            with untouched(model), untouched(reference):
                found = engine(model, records, clip_norm, tokens=tokens, positions=positions)
            assert norm_error(found, expected) <= TOLERANCE
            assert relative(found.gradient, expected.gradient) <= TOLERANCE


LLAMA = build("Llama", tied=False)
SHAPES = st.lists(
    st.tuples(st.lists(st.integers(2, 14), min_size=1, max_size=3), st.sampled_from([0.0, 0.3, 1.0])),
    min_size=1,
    max_size=5,
)


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
    for engine in (bookkeeping, opacus):
        found = engine.clipped_sum(LLAMA, records, CLIP, tokens=tokens, positions=False)
        assert norm_error(found, expected) <= TOLERANCE
        assert relative(found.gradient, expected.gradient) <= TOLERANCE


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_that_is_its_reference_has_nothing_to_unlearn(architecture: str) -> None:
    model = build(architecture)
    plain = record(10, 6, seed=1, architecture=architecture)
    usual = norm(record_gradient(model, plain, trainable(model)))
    own = copy.deepcopy(model).requires_grad_(False)
    all_anchored = [anchored(plain, own, share=1.0)]
    for found in (
        loop(model, all_anchored, 1e30),
        bookkeeping.clipped_sum(model, all_anchored, 1e30, tokens=4096, positions=architecture == "GPT-2"),
    ):
        assert norm(found.gradient) <= 1e-5 * usual
        assert float(found.norms[0]) <= 1e-5 * usual


def test_what_stands_at_an_anchored_token_is_not_learnt() -> None:
    """Its place, its weight and what comes before it count; what it is does not, save as what later tokens follow."""
    model = build("Llama")
    reference = reference_of(model)
    one = anchored(record(9, seed=1), reference, share=0.0)
    assert one.anchored is not None
    one.anchored[0][-1] = True
    ids = one.windows[0].token_ids.copy()
    ids[-1] = (ids[-1] + 7) % 60
    other = replace(one, windows=(replace(one.windows[0], token_ids=ids),))
    free = [replace(example, anchored=None, reference=None) for example in (one, other)]
    gradients = [record_gradient(model, example, trainable(model)) for example in (one, other, *free)]
    assert distance(gradients[0], gradients[1]) <= 1e-6 * norm(gradients[0])
    assert distance(gradients[2], gradients[3]) > 0.1 * norm(gradients[2])


def windows_of(*lengths: int, share: float, seed: int = 0) -> tuple[Window, ...]:
    """A record's windows with this share of its tokens sensitive, and some function words and placeholders."""
    draw = np.random.default_rng(seed)
    found = []
    for length in lengths:
        sensitive, function, ignored = (draw.random(length) < part for part in (share, 0.3, 0.1))
        found.append(Window(0, draw.integers(0, 60, length), sensitive, function, ignored))
    return tuple(found)


@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_a_record_without_sensitive_tokens_is_weighed_as_ever(weight: float) -> None:
    model = build("GPT-2")
    windows = windows_of(9, 7, share=0.0)
    pulled = make_example(windows, Anchored(weight=weight), reference=reference_of(model))
    weighed = make_example(windows, Weighted(weight=weight))
    assert all(np.array_equal(a, b) for a, b in zip(pulled.weights, weighed.weights, strict=True))
    gradients = [record_gradient(model, one, trainable(model)) for one in (pulled, weighed)]
    assert norm(gradients[0]) > 0
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    records = [[one, one] for one in (pulled, weighed)]
    sums = [bookkeeping.clipped_sum(model, one, CLIP, tokens=4096, positions=True) for one in records]
    assert all(torch.equal(a, b) for a, b in zip(sums[0].gradient, sums[1].gradient, strict=True))


def test_the_targets_that_are_sensitive_are_anchored_with_weight_one() -> None:
    model = build("GPT-2")
    windows = windows_of(9, 7, share=0.5, seed=3)
    found = make_example(windows, Anchored(weight=0.2), reference=model)
    assert found.anchored is not None
    for window, weights, mask in zip(windows, found.weights, found.anchored, strict=True):
        assert mask.tolist() == (window.sensitive & window.targets).tolist()
        assert mask.any()
        assert (weights[mask] == 1).all()
        assert (weights[~window.targets] == 0).all()


def test_a_record_does_not_depend_on_those_beside_it() -> None:
    model = build("Llama")
    reference = reference_of(model)
    one = anchored(record(9, seed=1), reference)
    mates = [
        anchored(record(length, seed=length), reference, share=share, seed=length)
        for length, share in ((3, 1.0), (9, 0.0), (9, 1.0), (12, 0.5))
    ]
    alone = bookkeeping.clipped_sum(model, [one], CLIP, tokens=4096, positions=False)
    for row in range(len(mates)):
        beside = bookkeeping.clipped_sum(model, [mates[row], one], CLIP, tokens=4096, positions=False)
        without = bookkeeping.clipped_sum(model, [mates[row]], CLIP, tokens=4096, positions=False)
        assert float(beside.norms[1]) == pytest.approx(float(alone.norms[0]), rel=TOLERANCE)
        added = [a - b for a, b in zip(beside.gradient, without.gradient, strict=True)]
        assert relative(added, alone.gradient) <= 10 * TOLERANCE


def test_a_record_whose_gradient_is_not_finite_adds_nothing() -> None:
    model = build("Llama", tied=False)
    reference = reference_of(model)
    records = [anchored(record(9, seed=1), reference), anchored(record(9, seed=2, scale=math.inf), reference)]
    for engine in (bookkeeping, opacus):
        found = engine.clipped_sum(model, records, CLIP, tokens=4096, positions=False)
        assert torch.isfinite(found.norms).tolist() == [True, False]
        assert relative(found.gradient, oracle(model, records[:1], CLIP).gradient) <= TOLERANCE


def test_anchors_and_their_reference_go_together() -> None:
    model = build("Llama")
    one = record(5)
    with pytest.raises(ValueError, match="go together"):
        replace(one, reference=model)
    with pytest.raises(ValueError, match="go together"):
        replace(one, anchored=(np.zeros(5, dtype=np.bool_),))
    with pytest.raises(ValueError, match="needs a reference"):
        make_example(one.windows, Anchored())
    assert make_example(one.windows, Uniform(), reference=model).reference is None
