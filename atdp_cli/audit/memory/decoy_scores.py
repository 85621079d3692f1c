"""How likely a model finds values and their decoys after the text before them, for many values at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.trie import has_rows
from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.forward import Batch, logits_of, padded
from atdp_cli.model.tokenizer import without_panic

BEFORE = 160
"""Characters of a record before a value that the model reads."""

PREFIX = 64
"""Tokens before a value that are read, at most."""

TOKENS_PER_BATCH = 4096

Floats = npt.NDArray[np.float64]
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The tokens of a value and of its decoys after the tokens that they all follow.

    Attributes:
        prefix: At least one token.
        tails: That of the value first, each at least one token.
    """

    prefix: Ids
    tails: tuple[Ids, ...]


def tokenise_tails(tokenizer: PreTrainedTokenizerFast, before: str, surfaces: Sequence[str]) -> Tails | None:
    """The tokens of each surface after the text before it; None where nothing precedes them all.

    Args:
        before: The record up to the value; its last `BEFORE` characters are read.
        surfaces: The value, then its decoys.
    """
    near = before[-BEFORE:]
    with without_panic(tokenizer.name_or_path):
        rows = [
            tuple(encoding.ids)
            for encoding in tokenizer.backend_tokenizer.encode_batch_fast(
                [near + surface for surface in surfaces], add_special_tokens=False
            )
        ]
    if len(near) == len(before) and tokenizer.bos_token_id is not None:
        rows = [(tokenizer.bos_token_id, *row) for row in rows]
    shared = _shared(rows)
    if shared == 0:
        return None
    return Tails(prefix=rows[0][max(0, shared - PREFIX) : shared], tails=tuple(row[shared:] for row in rows))


def _shared(rows: Sequence[Ids]) -> int:
    """Tokens that all rows begin with, fewer than the shortest has."""
    low, high = min(rows), max(rows)
    most = min(map(len, rows)) - 1
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b or i == most), most)


@torch.inference_mode()
def score_tails(model: PreTrainedModel, values: Sequence[Tails]) -> list[Floats]:
    """log p of each value's tails, in nats, shape [tails]; the model must be in eval mode.

    Where the model's context is too short, less is read of what precedes them.
    """
    scores: list[Floats] = [np.zeros(0)] * len(values)
    context = context_length(model)
    values = [_fitting(value, context) for value in values]
    for places in _batches(values):
        group = [values[place] for place in places]
        for place, own in zip(places, _score(model, group), strict=True):
            scores[place] = own
    return scores


def _fitting(value: Tails, context: int) -> Tails:
    """The tails after as much of their prefix as the context has room for, one token at least."""
    longest = max(map(len, value.tails))
    room = max(1, context - longest)
    return Tails(prefix=value.prefix[-room:], tails=tuple(tail[: context - 1] for tail in value.tails))


def _batches(values: Sequence[Tails]) -> Iterator[list[int]]:
    """Places of values whose prefixes have one length, since what is padded would shift positions."""
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(values)), key=lambda place: len(values[place].prefix)):
        value = values[place]
        own = len(value.prefix) + len(value.tails) * max(map(len, value.tails))
        if batch and (tokens + own > TOKENS_PER_BATCH or len(value.prefix) != len(values[batch[0]].prefix)):
            yield batch
            batch, tokens = [], 0
        batch.append(place)
        tokens += own
    if batch:
        yield batch


def _score(model: PreTrainedModel, values: Sequence[Tails]) -> Iterator[Floats]:
    """All tails of values whose prefixes have one length and whose tails are equally many."""
    count = len(values[0].tails)
    prefixes = torch.tensor([value.prefix for value in values])
    ids, mask = padded([np.asarray(tail, dtype=np.int64) for value in values for tail in value.tails])
    output = model(input_ids=prefixes.to(model.device), use_cache=True)
    first = output.logits[:, -1:].float().log_softmax(-1).repeat_interleave(count, 0)
    log_p = first.gather(2, ids[:, :1, None].to(first.device))[:, :, 0]
    if ids.shape[1] > 1:
        cache = getattr(output, "past_key_values", None)
        if cache is not None and has_rows(cache):
            cache.batch_repeat_interleave(count)
            logits = model(input_ids=ids[:, :-1].to(model.device), past_key_values=cache, use_cache=True).logits
        else:
            whole = torch.cat([prefixes.repeat_interleave(count, 0), ids[:, :-1]], 1)
            logits = logits_of(model, Batch(whole, None))[:, prefixes.shape[1] :]
        later = logits.float().log_softmax(-1)
        log_p = torch.cat([log_p, later.gather(2, ids[:, 1:, None].to(later.device))[:, :, 0]], 1)
    sums = (log_p.cpu().double() * mask).sum(1).numpy()
    yield from sums.reshape(len(values), count)
