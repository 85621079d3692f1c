"""T5's relative position bias: a table whose look-ups are made once for all windows of a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers.models.t5.modeling_t5 import T5Attention

Keep = Callable[[torch.Tensor, torch.Tensor], None]
"""Takes the buckets, shape [queries, keys], and the bias of each window, shape [windows, heads, queries, keys]."""


@contextmanager
def bias_of_each_window(attention: T5Attention, windows: int, start: torch.Tensor, keep: Keep) -> Iterator[None]:
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
