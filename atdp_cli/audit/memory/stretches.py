"""Stretches of a record that a model knows better than it should: maximal sums of its tokens' gains.

A token's gain is how much likelier the model finds it than the public reference does, less what it gains on average:
fine-tuning makes all text of a corpus likelier. Words that other, held-out records have as well are learnt as frequent,
not remembered, so they add nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atdp_cli.audit.memory.token_scores import TokenScores

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
