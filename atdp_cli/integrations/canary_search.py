"""Search for the tokens of canaries in a trainer's sequences, and for those that its loss counts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedTokenizerFast

from atdp_cli.audit.manifest import Manifest
from atdp_cli.errors import InputError
from atdp_cli.model.windows import align_record

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Tokens = tuple[int, ...]

UNCOUNTED = -100
"""The label of a token that no loss counts."""


@dataclass(frozen=True, slots=True)
class CanaryTokens:
    """The tokens of a canary to look for.

    Attributes:
        ids: The manifest's token ids, without the start token.
        first, last: Where the tokens that overlap the secret begin and end among them, end exclusive.
    """

    ids: Tokens
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Sequence1D:
    """One text, or several that were packed without a boundary, as the model reads it.

    Attributes:
        row: Its row in the batch.
        start: The place of its first token in the row.
        ids: Shape [T].
        counted: The loss counts the token, shape [T]: it is predicted from another one, and is its own label.
    """

    row: int
    start: int
    ids: Ids
    counted: Mask


@dataclass(kw_only=True)
class FoundCanaries:
    """How often each canary was found, by its tokens.

    Attributes:
        trained: With all tokens of its secret in the loss.
        alone: Of those, at the beginning of a sequence, where at most the start token stands before it.
        masked: With a token of its secret out of the loss.
        tails: Ends of sequences with which a canary begins, without the rest of it.
        heads: Beginnings of sequences with which a canary ends, without its beginning.
    """

    trained: Counter[Tokens] = field(default_factory=Counter)
    alone: Counter[Tokens] = field(default_factory=Counter)
    masked: Counter[Tokens] = field(default_factory=Counter)
    tails: Counter[Tokens] = field(default_factory=Counter)
    heads: Counter[Tokens] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Match:
    """A canary with all of its secret in the loss.

    Attributes:
        secret: The places of its secret's tokens in the row of the batch.
    """

    canary: CanaryTokens
    row: int
    secret: slice


def canary_tokens(manifest: Manifest, tokenizer: PreTrainedTokenizerFast) -> tuple[CanaryTokens, ...]:
    """Each canary's tokens, in the manifest's order.

    Args:
        tokenizer: Splits the canaries as the manifest has them (`token_mismatch`).
    """
    template = manifest.slots()
    canaries = []
    for canary in manifest.canaries:
        _, offsets = align_record(tokenizer, template.record(canary.secret), with_end=False)
        began, secret, place = int(tokenizer.bos_token_id is not None), np.zeros(len(offsets), dtype=bool), 0
        for text, filling in zip(template.texts, (*canary.secret, ""), strict=True):
            place += len(text)
            secret |= [start < place + len(filling) and end > place for start, end in offsets]
            place += len(filling)
        places = np.flatnonzero(secret) - began
        canaries.append(CanaryTokens(canary.token_ids[began:], int(places[0]), int(places[-1]) + 1))
    return tuple(canaries)


def sequences(batch: Mapping[str, Any]) -> Iterator[Sequence1D]:
    """The sequences of a batch, without padding; rows that hold several are parted where positions begin again.

    Raises:
        InputError: The batch has no token ids with labels of the same shape.
    """
    ids, labels = (_array(batch.get(name)) for name in ("input_ids", "labels"))
    if ids is None or labels is None or ids.shape != labels.shape:
        raise InputError(
            "The batches have no input_ids with labels of the same shape, as a causal model's loss takes them.",
            "Give the data loader that the trainer itself reads: trainer.get_train_dataloader().",
        )
    mask, positions = (_array(batch.get(name)) for name in ("attention_mask", "position_ids"))
    read = np.ones(ids.shape, dtype=bool) if mask is None or mask.shape != ids.shape else mask != 0
    begins = np.zeros(ids.shape, dtype=bool) if positions is None or positions.shape != ids.shape else positions == 0
    counted = (labels == ids) & read
    counted[:, 0] = False  # the first token of a row is predicted from nothing
    for row in range(len(ids)):
        kept = np.flatnonzero(read[row])
        parts = np.split(kept, np.flatnonzero(begins[row, kept])) if kept.size else []
        for part in parts:
            if part.size:
                yield Sequence1D(row, int(part[0]), ids[row, part], counted[row, part])


def _array(value: Any) -> npt.NDArray[np.int64] | None:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) and value.ndim == 2 else None


class CanarySearch:
    """Look for canaries in one sequence after another, in time that grows with the sequences alone.

    Args:
        start: The tokenizer's start token; None where it has none.
    """

    def __init__(self, canaries: Sequence[CanaryTokens], start: int | None) -> None:
        self.counts = FoundCanaries()
        self._start = start
        self._whole = {canary.ids: canary for canary in canaries}
        self._lengths = sorted({len(ids) for ids in self._whole})
        self._firsts = np.array(sorted({ids[0] for ids in self._whole}))
        self._begins = {ids[:end] for ids in self._whole for end in range(1, len(ids))}
        self._ends = {ids[begin:] for ids in self._whole for begin in range(1, len(ids))}

    def read(self, sequence: Sequence1D) -> list[Match]:
        """Count the canaries in a sequence, and return those whose secrets are in the loss."""
        ids, counts, matches = sequence.ids, self.counts, []
        for place in np.flatnonzero(np.isin(ids, self._firsts)).tolist():
            rest = tuple(ids[place : place + self._lengths[-1]].tolist())
            canary = next((self._whole[rest[:n]] for n in self._lengths if rest[:n] in self._whole), None)
            if canary is None:
                if place + len(rest) == len(ids) and rest in self._begins:
                    counts.tails[rest] += 1
                continue
            secret = slice(place + canary.first, place + canary.last)
            if not sequence.counted[secret].all():
                counts.masked[canary.ids] += 1
                continue
            counts.trained[canary.ids] += 1
            before = ids[:place]
            counts.alone[canary.ids] += place == 0 or (place == 1 and before[0] == self._start)
            matches.append(
                Match(canary, sequence.row, slice(sequence.start + secret.start, sequence.start + secret.stop))
            )
        begin = tuple(ids[: self._lengths[-1]].tolist())
        counts.heads.update(begin[:n] for n in range(1, len(begin) + 1) if begin[:n] in self._ends)
        return matches
