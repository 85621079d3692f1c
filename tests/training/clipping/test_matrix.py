"""The ghost engine against `per-record` in fp64, over a covering array: any two values of any two axes meet.

Left padding is not an axis: the engines form their batches themselves and pad on the right. A batch of one record is
the axis `tokens`. "recomputed" puts every layer in training mode, since in eval mode transformers recomputes nothing.
"""

import copy
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from atdp_cli.training.clip.batches import split
from atdp_cli.training.clip.engine import ClippedSum
from atdp_cli.training.clip.ghost import clipped_sum
from atdp_cli.training.clip.per_record import clipped_sum as loop
from atdp_cli.training.examples import Example
from atdp_cli.training.options import Precision
from atdp_cli.training.precision import in_precision
from tests.training.clipping import models
from tests.training.clipping.models import (
    CONTEXT,
    EOS,
    ISSUE,
    OWN_PAD,
    build,
    norm_error,
    oracle,
    pairwise,
    record,
    relative,
)
from tests.training.test_clipping import norm

AXES: dict[str, Sequence[Any]] = {
    "architecture": ISSUE,
    "target": ("full", "attention", "mlp", "embedding", "all"),
    "checkpointing": ("off", "on", "recomputed"),
    "tied": (True, False),
    "pad": (EOS, OWN_PAD),
    "padding": (True, False),
    "repeated": (False, True),
    "windows": ("one", "mixed"),
    "tokens": (1, 4096),
    "attention": ("sdpa", "eager"),
    "dtype": ("float32", "bfloat16", "autocast"),
    "cancelling": (False, True),
    "not_finite": (False, True),
}
CASES = pairwise(AXES)
TOLERANCE = 1e-5
BF16 = 2.0**-8
"""What rounding to bf16 may change in a number of 1."""
ARCHITECTURES_WITH_POSITIONS = ("GPT-2",)


def name(case: dict[str, Any]) -> str:
    shown = [axis if value is True else str(value).removeprefix("torch.") for axis, value in case.items() if value]
    return "-".join(shown)


def sample(case: dict[str, Any]) -> list[Example]:
    """Records in an order that is neither that of their lengths nor of their windows; some may share a batch."""
    lengths: list[tuple[int, ...]] = [(11,), (3,), (12,), (10,), (2,)]
    if case["windows"] == "mixed":
        lengths = [(11,), (6, 6, 4), (12,), (9, 3), (10,), (5, 5, 5)]
    if not case["padding"]:
        lengths = [(8,) * len(length) for length in lengths]
    kinds = {axis: case[axis] for axis in ("repeated", "cancelling", "architecture")}
    actual = [record(*length, seed=seed, **kinds) for seed, length in enumerate(lengths)]
    if case["not_finite"]:
        actual[1] = record(*lengths[1], seed=1, scale=math.inf, **kinds)
    return actual


def model_of(case: dict[str, Any]) -> Any:
    shape = {axis: case[axis] for axis in ("architecture", "tied", "target", "pad", "attention", "dtype")}
    shape["dtype"] = torch.bfloat16 if case["dtype"] == "bfloat16" else torch.float32
    model = build(**shape)
    if case["checkpointing"] != "off":
        with warnings.catch_warnings():
            # transformers 5.20 renamed it.
            warnings.simplefilter("ignore", FutureWarning)
            model.gradient_checkpointing_enable()
        model.train(case["checkpointing"] == "recomputed")
    return model


@pytest.mark.one_in(10)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_norms_and_sum_are_those_of_single_records(case: dict[str, Any]) -> None:
    check(case)


def check(case: dict[str, Any]) -> None:
    model, records = model_of(case), sample(case)
    positions = case["architecture"] in ARCHITECTURES_WITH_POSITIONS
    precision: Precision = "bfloat16" if case["dtype"] == "autocast" else "float32"
    engine = functools.partial(in_precision(precision, clipped_sum), model, tokens=case["tokens"], positions=positions)
    unclipped = oracle(model, records, 1e30)
    finite = unclipped.norms[torch.isfinite(unclipped.norms)]
    assert len(finite) == len(records) - case["not_finite"]
    for clip_norm in (float(finite.min()) / 3, float(finite.median()), 1e30):
        expected = oracle(model, records, clip_norm)
        with models.untouched(model):
            actual = engine(records, clip_norm)
        assert torch.equal(torch.isfinite(actual.norms), torch.isfinite(expected.norms))
        if case["dtype"] == "float32":
            assert norm_error(actual, expected) <= TOLERANCE
            assert relative(actual.gradient, expected.gradient) <= TOLERANCE
        else:
            rounded = in_precision(precision, loop)(copy.deepcopy(model), records, clip_norm)
            check_bf16(actual, rounded, expected)
    smallest = float(finite.min()) / 3
    for example in records:
        assert norm(engine([example], smallest).gradient) <= smallest


def check_bf16(actual: ClippedSum, rounded: ClippedSum, expected: ClippedSum) -> None:
    """The engine is as good as `per-record` in the same numbers, whose outcome is `rounded`."""
    assert {part.dtype for part in actual.gradient} == {torch.float64}
    assert norm_error(actual, expected) <= 2 * norm_error(rounded, expected) + BF16
    apart = relative(rounded.gradient, expected.gradient)
    assert relative(actual.gradient, expected.gradient) <= 2 * apart + BF16


@pytest.mark.parametrize(("windows", "sizes"), [("one", [2, 3]), ("mixed", [3, 1, 2])])
def test_padded_records_share_a_batch(windows: str, sizes: list[int]) -> None:
    case = {"windows": windows, "padding": True, "not_finite": False}
    shape = {"repeated": False, "cancelling": False, "architecture": ""}
    batches = list(split(sample(case | shape), 4096, CONTEXT))
    assert [len(batch.records) for batch in batches] == sizes
    assert any(batch.attention_mask is not None for batch in batches)
