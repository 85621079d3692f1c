"""A number that was found in a text, and those of its format that could have stood in its place."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from atdp_cli.audit.canary import LONGEST_SLOT, Characters, Secret, Template
from atdp_cli.audit.pool import PADDING, Candidates
from atdp_cli.model.tokenizer import without_panic
from atdp_cli.model.tokens import encode_record

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

FEWEST_DIGITS = 4
MOST_DIGITS = LONGEST_SLOT
LARGEST_POOL = 20_000
SAMPLE = 1_000
"""Alternatives of a number that has too many to list; more than a thousand take minutes for a dozen numbers."""

_SEED = 7  # of the sample: public and fixed, so that a model's figures never change
_NEAR = 64  # code points before the number that are tokenised with every alternative, at most
_SPREAD = 16
_MOST_DROPPED = 4

Tokens = list[int]


def format_of(text: str) -> tuple[Template, Secret] | None:
    """The format of a number as a template, and its digits: `555-1234` is `{digits:3}-{digits:4}`.

    Every run of ASCII digits becomes a slot and all else stays, also braces. None without such a digit.
    """
    parts = re.split(r"([0-9]+)", text)
    secret = tuple(parts[1::2])
    if not secret:
        return None
    return Template(texts=tuple(parts[::2]), slots=tuple(Characters("digits", len(run)) for run in secret)), secret


def alternatives(template: Template, secret: Secret, seed: Sequence[int], sample: int) -> tuple[list[str], int]:
    """What could have stood in a number's place, the number among it, and its position in the list.

    Up to `LARGEST_POOL` these are all numbers of the format, in order. Above it they are `sample` of them, uniform
    and with replacement, and then the number itself: n + 1 in all.

    Args:
        template: Of digits alone, as `format_of` gives it.
        seed: Not negative; which sample to take, the same for every model.
    """
    if template.pool <= LARGEST_POOL:
        return list(template.candidates()), template.index_of(secret)
    generator = np.random.default_rng([_SEED, *seed])
    lengths = [slot.length for slot in template.slots if isinstance(slot, Characters)]
    columns = [generator.integers(10, size=(sample, length)).tolist() for length in lengths]
    runs = zip(*(["".join(map(str, row)) for row in column] for column in columns), strict=True)
    return [*map(template.record, runs), template.record(secret)], sample


def tokenise_after(
    tokenizer: "PreTrainedTokenizerFast", before: str, texts: Sequence[str], *, place: int, context: int
) -> Candidates | None:
    """Each text with `before` in front of it as token ids: those of the window in which training would see it.

    The tokens are those that `encode_record` gives the whole string. Training cuts them as `encode_windows` does,
    into windows of `context` tokens that overlap by one, and all that the candidates do not share must lie within
    one window, so that every one is scored in the context that training gave the number. Nothing is kept on disk.

    Args:
        before: The record up to the number, without lone surrogates.
        texts: The alternatives.
        place: The position of the number itself among them.
        context: The longest window, at least 2 tokens.

    Returns:
        None where the candidates run over the end of a window, where no token comes before them, or where no cut
        through a long text in front of them leaves its tokens as they are.
    """
    spread = [texts[i] for i in {*np.linspace(0, len(texts) - 1, _SPREAD).astype(int).tolist(), place}]
    divided = _divided(tokenizer, before, spread)
    if divided is None:
        return None
    head, near, dropped = divided
    rows = [row[dropped:] for row in _encoded(tokenizer, [near + text for text in texts])]
    shared = len(head) + _shared(rows)
    # Token i is a target in the window that begins at the last multiple of context - 1 below i.
    start = (shared - 1) // (context - 1) * (context - 1)
    if shared == 0 or len(head) + max(map(len, rows)) > start + context:
        return None
    prefix = [*head, *rows[0]][start:shared]
    return _candidates(prefix, [row[shared - len(head) :] for row in rows])


def _divided(
    tokenizer: "PreTrainedTokenizerFast", before: str, spread: Sequence[str]
) -> tuple[Tokens, str, int] | None:
    """The tokens of all but the end of `before`, that end, and how many tokens to drop where it is tokenised alone.

    Tokenising a whole document before each of thousands of alternatives would take hours. Where a cut is possible
    is tried out: a spread of the alternatives must get the tokens that they have after the whole text, but for the
    first few, since some tokenizers put a space in front of whatever they are given.
    """
    if len(before) <= _NEAR:
        return ([] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]), before, 0
    wholes = [encode_record(tokenizer, before + text) for text in spread]
    for cut in _cuts(before):
        rows = _encoded(tokenizer, [before[cut:] + text for text in spread])
        for dropped in range(min(_MOST_DROPPED, *map(len, rows)) + 1):
            head = wholes[0][: max(len(wholes[0]) - len(rows[0]) + dropped, 0)]
            if all(head + row[dropped:] == whole for whole, row in zip(wholes, rows, strict=True)):
                return head, before[cut:], dropped
    return None


def _cuts(before: str) -> Iterator[int]:
    """Where a long text may be cut, some way before its end: around white space first, then anywhere."""
    places = range(len(before) - _NEAR, len(before) - _NEAR // 2)
    spaces = [at for at in places if before[at].isspace() or before[at - 1].isspace()]
    yield from spaces
    yield from (at for at in places if at not in set(spaces))


def _encoded(tokenizer: "PreTrainedTokenizerFast", texts: list[str]) -> list[Tokens]:
    """The ids of each text without a start token."""
    backend = tokenizer.backend_tokenizer
    # A tokenizer.json may ask for either; calling the tokenizer turns them off, and so does this.
    backend.no_truncation()
    backend.no_padding()
    with without_panic(tokenizer.name_or_path):
        return [list(encoding.ids) for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]


def _shared(rows: list[Tokens]) -> int:
    """How many tokens all rows begin with."""
    low, high = min(rows), max(rows)  # what these two share, all between them share
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def _candidates(prefix: Tokens, tails: list[Tokens]) -> Candidates:
    lengths = np.fromiter(map(len, tails), dtype=np.int32, count=len(tails))
    padded = np.full((len(tails), int(lengths.max())), PADDING, dtype=np.int32)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(tails), dtype=np.int32)
    return Candidates(prefix=np.array(prefix, dtype=np.int32), tails=padded, lengths=lengths)
