"""Perplexity of all, sensitive and other tokens."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F
from transformers import PreTrainedModel

from atdp_cli.model.forward import Batch, logits_of, pad
from atdp_cli.model.windows import Window


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """exp of the mean negative log-likelihood per token; None where there is no such token."""

    all: float | None
    sensitive: float | None
    other: float | None


def token_losses(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Negative log-likelihood of each next token in fp32, shape [windows, T−1]; padding holds arbitrary values."""
    logits = logits_of(model, batch)[:, :-1]
    following = batch.input_ids[:, 1:].to(logits.device)
    return F.cross_entropy(logits.float().transpose(1, 2), following, reduction="none")


@torch.inference_mode()
def perplexity(model: PreTrainedModel, windows: Sequence[Window], *, tokens_per_batch: int = 4096) -> Perplexity:
    """Perplexity over the windows' targets, summed in fp64; the model must be in eval mode."""
    total = np.zeros(2)
    count = np.zeros(2, dtype=np.int64)
    for group in _batches(windows, tokens_per_batch):
        losses = token_losses(model, pad(group)).cpu().double().numpy()
        for row, window in zip(losses, group, strict=True):
            targets = window.targets[1:]
            values = row[: len(targets)]
            for kind, counted in enumerate((window.sensitive[1:] & targets, ~window.sensitive[1:] & targets)):
                total[kind] += values[counted].sum()
                count[kind] += counted.sum()
    return Perplexity(
        all=_exp_mean(float(total.sum()), int(count.sum())),
        sensitive=_exp_mean(float(total[0]), int(count[0])),
        other=_exp_mean(float(total[1]), int(count[1])),
    )


def _batches(windows: Sequence[Window], tokens_per_batch: int) -> Iterator[list[Window]]:
    """Windows of similar lengths together, so that there is little padding."""
    group: list[Window] = []
    for window in sorted(windows, key=lambda window: len(window.token_ids)):
        if group and (len(group) + 1) * len(window.token_ids) > tokens_per_batch:
            yield group
            group = []
        group.append(window)
    if group:
        yield group


def _exp_mean(total: float, count: int) -> float | None:
    if count == 0:
        return None
    mean = total / count
    return math.exp(mean) if mean < 700 else math.inf
