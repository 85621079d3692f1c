"""Interpolation between a model and its reference."""

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.training.trainable import interpolate
from tests.training.clipping.models import build, draw_weights
from tests.training.test_clipping import distance, norm


def pair(architecture: str, *, tied: bool = True, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """A model and a reference of the same shape, frozen."""
    model = build(architecture, tied=tied)
    reference = copy.deepcopy(model)
    draw_weights(reference)
    return model, reference.to(dtype).requires_grad_(False)


def weights(model: Any) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("architecture", ["GPT-2", "Llama", "T5"])
def test_the_ends_are_the_model_and_the_reference(architecture: str, tied: bool) -> None:
    for beta in (0.0, 1.0):
        model, reference = pair(architecture, tied=tied)
        ends = weights(reference), weights(model)
        assert distance(*ends) > 0
        interpolate(model, reference, beta)
        assert all(torch.equal(a, b) for a, b in zip(weights(model), ends[int(beta)], strict=True))
        assert all(torch.equal(a, b) for a, b in zip(weights(reference), ends[0], strict=True))


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_between_them_it_is_linear_and_twice_is_once_by_the_product(first: float, second: float) -> None:
    model, reference = pair("GPT-2")
    start, end = weights(reference), weights(model)
    interpolate(model, reference, first)
    expected = [a.double() + first * (b.double() - a.double()) for a, b in zip(start, end, strict=True)]
    assert distance(weights(model), expected) <= 1e-6 * norm(expected)
    interpolate(model, reference, second)
    once = [a.double() + first * second * (b.double() - a.double()) for a, b in zip(start, end, strict=True)]
    assert distance(weights(model), once) <= 1e-6 * norm(once)


def test_a_reference_in_another_dtype_leaves_the_models_own() -> None:
    model, reference = pair("Llama", dtype=torch.bfloat16)
    interpolate(model, reference, 0.0)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(torch.equal(a, b.float()) for a, b in zip(weights(model), weights(reference), strict=True))
    assert all(parameter.requires_grad for parameter in model.parameters())
