"""Scores of a record's tokens in training windows, their gains over a base model, and the best stretches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from atdp_cli.audit.rank import scored
from atdp_cli.errors import RunError
from atdp_cli.events import Notify, RecordsRead
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.forward import Batch, logits_of, padded
from atdp_cli.model.windows import align_record, length_batches

TOKENS_PER_BATCH = 1024


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """One record's tokens, and a model's log p of each after those before it.

    Attributes:
        ids: int64, shape [T].
        offsets: The code points that each token covers, end exclusive, int64, shape [T, 2].
        log_p: Natural logarithms of their probabilities, float32, shape [T]; 0 for the first, which nothing predicts.
        greedy: Whether no token is likelier, shape [T]; False for the first.
    """

    ids: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    log_p: npt.NDArray[np.float32]
    greedy: npt.NDArray[np.bool_]


def score_tokens(checkpoint: Checkpoint, texts: Sequence[str], *, name: str, notify: Notify) -> list[TokenScores]:
    """Score every token of every text; the model must be a causal one in eval mode.

    Texts longer than the context are cut into windows that overlap by one token, as training cuts them. Texts of
    similar lengths share a forward pass.

    Args:
        texts: Records; one without tokens has none in its scores.
        name: Of the model, for progress and errors.
        notify: Hears how many windows are scored.

    Raises:
        InputError: The tokenizer fails on a text.
        RunError: The model gives something that is not a number, or memory ran out.
    """
    scores = [_empty(checkpoint, text) for text in texts]
    cuts = list(_cuts([len(record.ids) for record in scores], context_length(checkpoint.model)))
    done = 0
    for places in length_batches([end - start for _, start, end in cuts], TOKENS_PER_BATCH):
        batch, done = [cuts[place] for place in places], done + len(places)
        rows = [scores[record].ids[start:end] for record, start, end in batch]
        with scored(name):
            log_p, greedy = _score(checkpoint, rows)
        for (record, start, end), values, likeliest in zip(batch, log_p, greedy, strict=True):
            scores[record].log_p[start + 1 : end] = values[: end - start - 1]
            scores[record].greedy[start + 1 : end] = likeliest[: end - start - 1]
        notify(RecordsRead(task=f"reading by {Path(name).name}", done=done, total=len(cuts)))
    if not all(np.isfinite(record.log_p).all() for record in scores):
        raise RunError(
            f"{name} gives a token a probability that is zero or not a number.",
            "Check the checkpoint: its weights may be damaged.",
        )
    return scores


def _empty(checkpoint: Checkpoint, text: str) -> TokenScores:
    ids, offsets = align_record(checkpoint.tokenizer, text, with_end=False)
    return TokenScores(
        ids=np.asarray(ids, dtype=np.int64),
        offsets=np.asarray(offsets, dtype=np.int64).reshape(-1, 2),
        log_p=np.zeros(len(ids), dtype=np.float32),
        greedy=np.zeros(len(ids), dtype=np.bool_),
    )


Cut = tuple[int, int, int]
"""A record's place, and its tokens from the first to before the last."""


def _cuts(lengths: Sequence[int], context: int) -> Iterator[Cut]:
    for record, length in enumerate(lengths):
        for start in range(0, length - 1, context - 1):
            yield record, start, min(start + context, length)


@torch.inference_mode()
def _score(
    checkpoint: Checkpoint, rows: Sequence[npt.NDArray[np.int64]]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    ids, mask = padded(rows)
    logits = logits_of(checkpoint.model, Batch(ids, None if bool(mask.all()) else mask))[:, :-1].float()
    following = ids[:, 1:].to(logits.device)
    of_token = logits.gather(2, following[:, :, None])[:, :, 0]
    log_p = of_token - logits.logsumexp(2)
    return log_p.cpu().numpy(), (of_token >= logits.amax(2)).cpu().numpy()


Gains = npt.NDArray[np.float64]

NGRAM = 2
"""Tokens in a row that must be in a held-out record for the last of them to count as frequent."""

_SEVERAL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Tokens `start` to before `end` of a record, and the sum of their gains in nats, above 0."""

    start: int
    end: int
    gain: float


class FrequentNgrams:
    """Token n-grams of held-out groups of records, and whether a group other than a given one has them.

    Args:
        held_out: The tokens of each record, shape [T], and its group, from 0.
    """

    def __init__(self, held_out: Iterable[tuple[npt.NDArray[np.int64], int]]) -> None:
        self._only_in: dict[tuple[int, ...], int] = {}
        for ids, group in held_out:
            for ngram in _ngrams(ids):
                if self._only_in.setdefault(ngram, group) != group:
                    self._only_in[ngram] = _SEVERAL

    def ends(self, ids: npt.NDArray[np.int64], *, group: int | None = None) -> npt.NDArray[np.bool_]:
        """Which tokens end an n-gram that a held-out group has, shape [T].

        A training record is looked up in all n groups and a held-out one in the n − 1 others. So by chance it gains
        less than a held-out one, and its p-value is on the safe side.

        Args:
            ids: A record's tokens, shape [T].
            group: Its own, if it is held out.
        """
        known = np.zeros(len(ids), dtype=np.bool_)
        for last, ngram in enumerate(_ngrams(ids), start=NGRAM - 1):
            where = self._only_in.get(ngram)
            known[last] = where is not None and where != group
        return known


def _ngrams(ids: npt.NDArray[np.int64]) -> list[tuple[int, ...]]:
    tokens = ids.tolist()
    return list(zip(*(tokens[first:] for first in range(NGRAM)), strict=False))


def log_ratios(model: TokenScores, reference: TokenScores | None) -> Gains:
    """log p − log p_ref of each token, or log p where there is no reference, shape [T]."""
    ratios = model.log_p.astype(np.float64)
    return ratios if reference is None else ratios - reference.log_p


def token_gains(ratios: Gains, average: float, uncounted: npt.NDArray[np.bool_]) -> Gains:
    """The gain of each token, shape [T]: that of the first is 0, and that of one that is no memory at most 0."""
    gains = ratios - average
    gains[uncounted] = np.minimum(gains[uncounted], 0.0)
    gains[:1] = 0.0
    return gains


def best_stretch(gains: Gains) -> Stretch | None:
    """The stretch of the greatest sum, the shortest of equal ones; None where no token has a gain above 0.

    Source: Kadane's algorithm, Bentley 1984, Programming Pearls.
    """
    if not (gains > 0).any():
        return None
    total = np.concatenate(([0.0], np.cumsum(gains)))
    lowest = np.minimum.accumulate(total[:-1])
    end = int(np.argmax(total[1:] - lowest)) + 1
    # The last place of the lowest sum makes the stretch short.
    start = end - 1 - int(np.argmin(total[:end][::-1]))
    return Stretch(start=start, end=end, gain=float(total[end] - total[start]))


def stretches_above(gains: Gains, floor: float) -> tuple[Stretch, ...]:
    """Stretches of at least `floor` > 0 nats that do not overlap, in order: the best, then those beside it."""
    stretches: list[Stretch] = []
    parts = [(0, len(gains))]
    while parts:
        first, last = parts.pop()
        stretch = best_stretch(gains[first:last])
        if stretch is None or stretch.gain < floor:
            continue
        start, end = first + stretch.start, first + stretch.end
        stretches.append(Stretch(start=start, end=end, gain=stretch.gain))
        parts += [(first, start), (end, last)]
    return tuple(sorted(stretches, key=lambda stretch: stretch.start))
