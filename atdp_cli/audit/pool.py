"""The candidates of a template as token ids, all of them or a sample."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atdp_cli.audit.canary import ALPHABETS, Choice, Slot, Template
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.model.tokenizer import without_panic

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Ids = NDArray[np.int32]

PADDING = -1  # sorts a sequence before those that it begins
LARGEST_POOL = 10_000_000
SAMPLE = 1_000_000
_BATCH = 10_000
_ENCODED = 200  # at a time: ten thousand encodings do not fit the cache, and take half as long again
_SEED = 6  # of the sample: public and fixed, so that the secrets are independent of it and a verdict never changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The token ids of records: every candidate in the order of `Template.candidates`, or a sample of them.

    Attributes:
        prefix: What all of them begin with, the beginning token included, shape [k]: as long as it can be.
        tails: What follows the prefix, shape [n, longest], filled up with `PADDING`.
        lengths: Tokens of each tail, shape [n], from 0.
    """

    prefix: Ids
    tails: Ids
    lengths: Ids


def tokenise(
    tokenizer: "PreTrainedTokenizerFast", template: Template, *, sample: int | None = None, notify: Notify = ignore
) -> Candidates:
    """Tokenise every candidate, or a sample, as `encode_record` does. Some 7 µs each, spread over the cores."""
    backend = tokenizer.backend_tokenizer
    # A tokenizer.json may ask for either; calling the tokenizer turns them off, and so does this.
    backend.no_truncation()
    backend.no_padding()
    drawn = _sample(template, sample)
    texts = template.candidates() if drawn is None else _sampled(template, drawn)
    flat: list[Ids] = []
    sizes: list[Ids] = []
    done, total = 0, _count(template, sample)
    while batch := list(islice(texts, _ENCODED)):
        with without_panic(tokenizer.name_or_path):
            ids = [encoding.ids for encoding in backend.encode_batch_fast(batch, add_special_tokens=False)]
        sizes.append(np.fromiter(map(len, ids), dtype=np.int32, count=len(ids)))
        flat.append(np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=int(sizes[-1].sum())))
        done += len(batch)
        if done % _BATCH == 0 or done == total:
            notify(RecordsRead(task="tokenising candidates", done=done, total=total))
    start = tokenizer.bos_token_id
    return _split(np.concatenate(flat), np.concatenate(sizes), () if start is None else (start,))


def sampled(template: Template) -> bool:
    """Whether the pool is too large to score every candidate."""
    return template.pool > LARGEST_POOL


def with_records(
    candidates: Candidates, tokenizer: "PreTrainedTokenizerFast", records: Sequence[Sequence[int]]
) -> Candidates:
    """The candidates followed by further records, each tokenised as by `encode_record`."""
    widest = max(candidates.tails.shape[1] + candidates.prefix.size, *(len(record) for record in records))
    n = len(candidates.tails)
    rows = np.full((n + len(records), widest), PADDING, dtype=np.int32)
    rows[:n, : candidates.prefix.size] = candidates.prefix
    rows[:n, candidates.prefix.size : candidates.prefix.size + candidates.tails.shape[1]] = candidates.tails
    for place, record in enumerate(records, start=n):
        rows[place, : len(record)] = record
    start = 0 if tokenizer.bos_token_id is None else 1
    lengths = np.array([len(record) for record in records], dtype=np.int32)
    sizes = np.concatenate([candidates.lengths + candidates.prefix.size, lengths]) - start
    return _split_rows(rows[:, start:], sizes.astype(np.int32), tuple(rows[0, :start].tolist()))


def _sample(template: Template, sample: int | None) -> int | None:
    """The number of candidates to draw; None for all."""
    return SAMPLE if sample is None and sampled(template) else sample


def _count(template: Template, sample: int | None) -> int:
    return _sample(template, sample) or template.pool


def _sampled(template: Template, sample: int) -> Iterator[str]:
    """Draw records of the template uniformly, the same in every run."""
    generator = np.random.default_rng(_SEED)
    for start in range(0, sample, _BATCH):
        count = min(_BATCH, sample - start)
        yield from map(
            template.record, zip(*(_fillings(slot, generator, count) for slot in template.slots), strict=True)
        )


def _fillings(slot: Slot, generator: np.random.Generator, count: int) -> list[str]:
    if isinstance(slot, Choice):
        return [slot.options[pick] for pick in generator.integers(len(slot.options), size=count)]
    letters = np.array(list(ALPHABETS[slot.kind]))[
        generator.integers(len(ALPHABETS[slot.kind]), size=(count, slot.length))
    ]
    return ["".join(row) for row in letters.tolist()]


def _split(flat: Ids, sizes: Ids, start: tuple[int, ...]) -> Candidates:
    """Pad the ragged ids."""
    longest = int(sizes.max())
    rows = np.full((sizes.size, longest), PADDING, dtype=np.int32)
    rows[np.arange(longest) < sizes[:, None]] = flat
    return _split_rows(rows, sizes, start)


def _split_rows(rows: Ids, sizes: Ids, start: tuple[int, ...]) -> Candidates:
    """Split off the prefix that all rows share; `start` comes before every row."""
    shared = 0
    # PADDING ends the loop where the shortest sequence ends, unless all are equal, which the bound covers.
    while shared < sizes.min() and (rows[:, shared] == rows[0, shared]).all():
        shared += 1
    prefix = np.array([*start, *rows[0, :shared]], dtype=np.int32)
    return Candidates(
        prefix=prefix, tails=np.ascontiguousarray(rows[:, shared:]), lengths=(sizes - shared).astype(np.int32)
    )
