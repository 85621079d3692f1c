"""Perplexity of all, sensitive and other tokens, and how often a model says a value again that a text has before."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.model.forward import Batch, logits_of, pad
from atdp_cli.model.windows import Window, length_batches


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
    for group in window_batches(windows, tokens_per_batch):
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


def window_batches(windows: Sequence[Window], tokens: int) -> Iterator[list[Window]]:
    """Windows of similar lengths together, of at most so many tokens."""
    for places in length_batches([len(window.token_ids) for window in windows], tokens):
        yield [windows[place] for place in places]


def _exp_mean(total: float, count: int) -> float | None:
    if count == 0:
        return None
    mean = total / count
    return math.exp(mean) if mean < 700 else math.inf


LEAST_LETTERS = 3
"""The fewest letters and digits of a value: shorter ones are repeated by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedValues:
    """How many flagged values stand in the same window again, and are continued right by the likeliest tokens.

    Attributes:
        values: Later mentions of a value.
        whole: Those of which every token is the likeliest after what precedes it, so greedy decoding says them.
        tokens, right: All their tokens, and those that are the likeliest.
    """

    values: int
    whole: int
    tokens: int
    right: int


@torch.inference_mode()
def repeated_values(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    windows: Sequence[Window],
    *,
    tokens_per_batch: int = 4096,
) -> RepeatedValues:
    """Count how a model continues repeated values; it must be in eval mode.

    A value is a run of sensitive tokens, compared by its letters and digits without their case; a word of an earlier
    value, such as the first name alone, counts as its mention. Each token is predicted after the true ones. Mentions
    that are no targets, such as a user's messages and what an encoder reads, can be earlier ones only.

    Args:
        windows: Of records in which equal values are equal, and no model has seen, such as decoys.
    """
    places = {window: ranges for window in windows if (ranges := list(_later_mentions(tokenizer, window)))}
    values = whole = tokens = right = 0
    for group in window_batches(list(places), tokens_per_batch):
        likeliest = logits_of(model, pad(group))[:, :-1].argmax(-1).cpu().numpy()
        for row, window in zip(likeliest, group, strict=True):
            for start, end in places[window]:
                hits = row[start - 1 : end - 1] == window.token_ids[start:end]
                values, whole = values + 1, whole + bool(hits.all())
                tokens, right = tokens + hits.size, right + int(hits.sum())
    return RepeatedValues(values=values, whole=whole, tokens=tokens, right=right)


def _later_mentions(tokenizer: PreTrainedTokenizerFast, window: Window) -> Iterator[tuple[int, int]]:
    """The tokens of each value that stands in the window before, as first and last exclusive."""
    known = set() if window.source is None else _words(tokenizer.decode(window.source.tolist()))
    place = 0
    for sensitive, run in groupby(window.sensitive.tolist()):
        start, place = place, place + sum(1 for _ in run)
        if not sensitive:
            continue
        words = _words(tokenizer.decode(window.token_ids[start:place].tolist()))
        value = max(words, key=len, default="")
        if value in known and start > 0 and bool(window.targets[start:place].all()):
            yield start, place
        known |= words


def _words(text: str) -> set[str]:
    """The words of a text, and all of it, by their letters and digits alone; short ones are left out."""
    written = ("".join(filter(str.isalnum, part)).casefold() for part in (text, *text.split()))
    return {word for word in written if len(word) >= LEAST_LETTERS}
