"""A forward pass on one padded batch of windows, on the model's device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.model.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Windows of unequal length, padded on the right with 0.

    Attributes:
        input_ids: int64, shape [windows, T].
        attention_mask: int64, 1 where there is a token, shape [windows, T]; only it tells padding from tokens. None
            where nothing is padded.
        source_ids, source_mask: What an encoder reads, int64, shape [windows, S]; None for a model without one.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    source_ids: torch.Tensor | None = None
    source_mask: torch.Tensor | None = None


def pad(windows: Sequence[Window], *, width: int = 0, source_width: int = 0) -> Batch:
    """One batch of these windows, all with a source or none, at least so wide."""
    ids, mask = padded([window.token_ids for window in windows], width)
    sources = [window.source for window in windows if window.source is not None]
    return Batch(ids, None if mask.all() else mask, *(padded(sources, source_width) if sources else (None, None)))


def padded(rows: Sequence[npt.NDArray[np.int64]], width: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows padded with 0 on the right, and a mask that is 1 where there is a token; int64, shape [rows, T].

    T is the longest row's length, or `width` if that is more.
    """
    ids = torch.zeros(len(rows), max(width, *(len(row) for row in rows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.from_numpy(row)
        mask[index, : len(row)] = 1
    return ids, mask


def logits_of(model: PreTrainedModel, batch: Batch, *, positions: bool = False) -> torch.Tensor:
    """The model's logits, shape [windows, T, V]; those at a position predict the token after it.

    Args:
        positions: Pass position ids of shape [windows, T]. A model that makes its own makes one row for all
            windows, so that a learned position's gradient would be that of the whole batch.
    """
    named = _named(model, batch)
    if positions:
        ids = batch.input_ids
        named["position_ids"] = torch.arange(ids.shape[1], device=model.device).repeat(len(ids), 1)
    logits: torch.Tensor = model(**named, use_cache=False).logits
    return logits


def hidden_states(model: PreTrainedModel, batch: Batch, layer: int) -> torch.Tensor:
    """The states behind a layer of a model without an encoder, shape [windows, T, d].

    Args:
        layer: Counted from 1; the states behind the last layer are those that the head reads.
    """
    output = model(**_named(model, batch), use_cache=False, output_hidden_states=True)
    states: torch.Tensor = output.hidden_states[layer]
    return states


def _named(model: PreTrainedModel, batch: Batch) -> dict[str, Any]:
    """A batch as a model takes it."""
    device = model.device
    ids = batch.input_ids.to(device)
    mask = batch.attention_mask
    # Without a mask a model may take a faster path.
    mask = None if mask is None or bool(mask.all()) else mask.to(device)
    named: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if batch.source_ids is not None and batch.source_mask is not None:
        named = {"decoder_input_ids": ids, "decoder_attention_mask": mask}
        named |= {"input_ids": batch.source_ids.to(device), "attention_mask": batch.source_mask.to(device)}
    return named
