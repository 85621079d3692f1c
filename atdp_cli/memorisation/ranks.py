"""Ranks of flagged values among decoys: how likely a model finds each after the text before it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import mannwhitneyu
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.trie import has_rows
from atdp_cli.corpus.spans import Span, merge
from atdp_cli.memorisation.results import ComparedRanks
from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.forward import Batch, logits_of, padded
from atdp_cli.model.tokenizer import without_panic
from atdp_cli.replacement.decoys import Choose
from atdp_cli.replacement.draw import decoy_text

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


DECOYS = 15
"""Decoys that each value is ranked among."""


@dataclass(frozen=True, kw_only=True)
class FlaggedValue:
    """A flagged value in its record."""

    text: str
    span: Span


def spread(count: int, most: int) -> list[int]:
    """Choose at most so many of `count` positions, evenly apart."""
    return [number * count // most for number in range(most)] if count > most else list(range(count))


def pick_values(records: Sequence[tuple[str, Sequence[Span]]], *, most: int) -> tuple[FlaggedValue, ...]:
    """Pick one value from each of at most so many texts that have a span: the first, the second, … in turn."""
    flagged = [(text, merge(spans)) for text, spans in records if spans]
    some = [flagged[place] for place in spread(len(flagged), most)]
    return tuple(FlaggedValue(text=text, span=spans[turn % len(spans)]) for turn, (text, spans) in enumerate(some))


def pick_alike(
    records: Sequence[tuple[str, Sequence[Span]]], like: Sequence[FlaggedValue], *, most: int
) -> tuple[FlaggedValue, ...]:
    """Pick one value from each of at most so many texts, with the labels as frequent as among others, as far as
    possible.
    """
    left = {label: ceil(count * most / len(like)) for label, count in Counter(v.span.label for v in like).items()}
    values: list[FlaggedValue] = []
    for turn, (text, spans) in enumerate((text, merge(spans)) for text, spans in records if spans):
        # A later value is often told by those before it, so the place in the record takes turns here too.
        wanted = [span for span in spans if left.get(span.label, 0) > 0]
        if wanted and len(values) < most:
            span = wanted[turn % len(wanted)]
            left[span.label] -= 1
            values.append(FlaggedValue(text=text, span=span))
    return tuple(values)


def compare_ranks(training: Sequence[float], held_out: Sequence[float]) -> ComparedRanks:
    """The ranks of values of training records beside those of held-out records, at least one of each."""
    return ComparedRanks(
        training=float(np.mean(training)),
        held_out=float(np.mean(held_out)),
        training_values=len(training),
        held_out_values=len(held_out),
        p_value=float(mannwhitneyu(training, held_out, alternative="less").pvalue),
    )


@dataclass(frozen=True, kw_only=True)
class TokenisedValue:
    """A flagged value with the tokens of what it is ranked among: itself and its decoys, after the text before it."""

    value: FlaggedValue
    tails: Tails


def tokenise_values(
    tokenizer: PreTrainedTokenizerFast, values: Sequence[FlaggedValue], choose: Choose
) -> tuple[TokenisedValue, ...]:
    """The values that have a rank. Those at the start of a record have none for a tokenizer without a start token.

    Args:
        choose: Draws the decoys, from their shapes alone.
    """
    tokenised = [
        (value, tokenise_tails(tokenizer, value.text[: value.span.start], list(_surfaces(value, choose))))
        for value in values
    ]
    return tuple(TokenisedValue(value=value, tails=tails) for value, tails in tokenised if tails is not None)


def value_ranks(model: PreTrainedModel, values: Sequence[TokenisedValue]) -> tuple[float, ...]:
    """For each value the share of its decoys that the model finds likelier, ties half; the model must be in eval mode.

    What is compared is the log-probability of the value after the characters before it.
    """
    scores = score_tails(model, [value.tails for value in values])
    return tuple(float(np.mean((own[1:] > own[0]) + (own[1:] == own[0]) / 2)) for own in scores)


def _surfaces(value: FlaggedValue, choose: Choose) -> Iterator[str]:
    """The true value, and then its decoys there."""
    yield value.text[value.span.start : value.span.end]
    for _ in range(DECOYS):
        changed = decoy_text(value.text, (value.span,), choose)
        [(start, end)] = changed.places
        yield changed.text[start:end]
