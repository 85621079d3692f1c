"""In what numbers layers compute. Weights, losses, norms, sums, noise and the optimizer stay in fp32 or better."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.training.execution import Precision

Given = ParamSpec("Given")
Result = TypeVar("Result")


@contextmanager
def computing_in(model: PreTrainedModel, precision: Precision) -> Iterator[None]:
    """With bfloat16 the model's forward passes run under torch's autocast, and what flows back meets the same numbers.

    Only the passes: under autocast the products that make norms and sums would be rounded as well.
    """
    if precision == "float32":
        yield
        return
    plain = model.forward

    def forward(*args: Any, **named: Any) -> Any:
        with torch.autocast(model.device.type, dtype=torch.bfloat16):
            return plain(*args, **named)

    vars(model)["forward"] = forward
    try:
        yield
    finally:
        del vars(model)["forward"]


def in_precision(
    precision: Precision, work: Callable[Concatenate[PreTrainedModel, Given], Result]
) -> Callable[Concatenate[PreTrainedModel, Given], Result]:
    """The work on a model, its layers computing in this precision."""

    def computed(model: PreTrainedModel, /, *args: Given.args, **named: Given.kwargs) -> Result:
        with computing_in(model, precision):
            return work(model, *args, **named)

    return computed


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise UsageError where the device has no such numbers."""
    if precision == "float32" or device.type != "cuda":
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UsageError("This GPU does not compute in bfloat16.", "Leave --precision out.")
