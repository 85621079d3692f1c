"""The precision of layers' computations. Weights, losses, norms, sums, noise and optimizer stay in fp32 or better."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import UsageError
from atdp_cli.training.options import Precision

Arguments = ParamSpec("Arguments")

Returned = TypeVar("Returned")


@contextmanager
def computing_in(model: PreTrainedModel, precision: Precision) -> Iterator[None]:
    """With bfloat16, run the model's forward and backward passes under torch's autocast.

    Nothing else does: under autocast the products for norms and sums would be rounded as well.
    """
    if precision == "float32":
        yield
        return
    original = model.forward

    def forward(*args: Any, **named: Any) -> Any:
        with torch.autocast(model.device.type, dtype=torch.bfloat16):
            return original(*args, **named)

    vars(model)["forward"] = forward
    try:
        yield
    finally:
        del vars(model)["forward"]


def in_precision(
    precision: Precision, work: Callable[Concatenate[PreTrainedModel, Arguments], Returned]
) -> Callable[Concatenate[PreTrainedModel, Arguments], Returned]:
    """`work` with the model's layers computing in this precision."""

    def computed(model: PreTrainedModel, /, *args: Arguments.args, **named: Arguments.kwargs) -> Returned:
        with computing_in(model, precision):
            return work(model, *args, **named)

    return computed


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise UsageError where the device does not compute in this precision."""
    if precision == "float32" or device.type != "cuda":
        return
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UsageError("This GPU does not compute in bfloat16.", "Leave run.compute-dtype out.")
