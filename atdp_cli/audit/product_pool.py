"""Pools as products of tokens, where every character of the secret is a token of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atdp_cli.audit.canary import ALPHABETS, Characters, Secret, Template
from atdp_cli.audit.pool import Candidates
from atdp_cli.model.windows import encode_record

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_SAMPLE = 10_000
_SEED = 8

Tokens = NDArray[np.int64]
Split = Callable[[Sequence[str]], list[int]]
"""The token ids of the record whose slots hold these characters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductPool:
    """A pool as a product of tokens.

    Attributes:
        prefix: What all records begin with, the beginning token included, shape [k].
        steps: For each later position the tokens that may come there; one alone for what does not vary.
        places: Which character of the secret decides at each position, None where none does.
        characters: The character of each token in `steps`.
    """

    prefix: Tokens
    steps: tuple[Tokens, ...]
    places: tuple[int | None, ...]
    characters: tuple[str, ...]

    @property
    def levels(self) -> tuple[int, ...]:
        """Inner nodes of a trie of all candidates, by depth: each costs one position of one forward pass."""
        return tuple(accumulate((len(step) for step in self.steps[:-1]), mul, initial=1))

    def path(self, secret: Secret) -> tuple[int, ...]:
        """Which token of each step the secret takes."""
        letters = "".join(secret)
        return tuple(
            0 if place is None else characters.index(letters[place])
            for place, characters in zip(self.places, self.characters, strict=True)
        )


def list_candidates(product: ProductPool, template: Template) -> Candidates:
    """All candidates of the template, in its order, without a tokenizer."""
    slots = [slot for slot in template.slots if isinstance(slot, Characters)]
    sizes = [len(ALPHABETS[slot.kind]) for slot in slots for _ in range(slot.length)]
    chosen = np.unravel_index(np.arange(template.pool), sizes)
    tails = np.empty((template.pool, len(product.steps)), dtype=np.int32)
    for at, (step, place) in enumerate(zip(product.steps, product.places, strict=True)):
        tails[:, at] = step[0] if place is None else step[chosen[place]]
    lengths = np.full(template.pool, len(product.steps), dtype=np.int32)
    return Candidates(prefix=product.prefix.astype(np.int32), tails=tails, lengths=lengths)


def product_pool(tokenizer: "PreTrainedTokenizerFast", template: Template) -> ProductPool | None:
    """The pool as a product, if the tokenizer gives every character of the slots a token of its own; else None.

    Each character is varied by itself to learn its tokens; then `_SAMPLE` uniform records must be split as these
    say. A merge of two characters would show up in dozens of them, since tokenizers build longer merges from it.
    """
    slots = [slot for slot in template.slots if isinstance(slot, Characters)]
    if len(slots) < len(template.slots):
        return None
    alphabets = [ALPHABETS[slot.kind] for slot in slots for _ in range(slot.length)]

    def split(letters: Sequence[str]) -> list[int]:
        rest = iter(letters)
        secret = tuple("".join(next(rest) for _ in range(slot.length)) for slot in slots)
        return encode_record(tokenizer, template.record(secret))

    base = [alphabet[0] for alphabet in alphabets]
    whole = split(base)
    tables: dict[int, tuple[int, dict[str, int]]] = {}
    for place, alphabet in enumerate(alphabets):
        learnt = _learn(split, base, place, alphabet)
        if learnt is None or learnt[0] in tables:
            return None
        tables[learnt[0]] = place, learnt[1]
    first = min(tables)
    product = ProductPool(
        prefix=np.array(whole[:first], dtype=np.int64),
        steps=tuple(
            np.array(list(tables[at][1].values()) if at in tables else [whole[at]], dtype=np.int64)
            for at in range(first, len(whole))
        ),
        places=tuple(tables[at][0] if at in tables else None for at in range(first, len(whole))),
        characters=tuple("".join(tables[at][1]) if at in tables else "" for at in range(first, len(whole))),
    )
    return product if first and _holds(split, product, alphabets) else None


def _learn(split: Split, base: Sequence[str], place: int, alphabet: str) -> tuple[int, dict[str, int]] | None:
    """Learn which token a character decides, and the token for each letter; None if it is not one token."""
    whole = split(base)
    token_of: dict[str, int] = {}
    decided: set[int] = set()
    for letter in alphabet[1:]:
        other = split([*base[:place], letter, *base[place + 1 :]])
        differing = [at for at, pair in enumerate(zip(whole, other, strict=False)) if pair[0] != pair[1]]
        if len(other) != len(whole) or len(differing) != 1:
            return None
        decided.add(differing[0])
        token_of[letter] = other[differing[0]]
    where = min(decided)
    tokens = {alphabet[0]: whole[where], **token_of}
    return (where, tokens) if len(decided) == 1 and len(set(tokens.values())) == len(alphabet) else None


def _holds(split: Split, product: ProductPool, alphabets: Sequence[str]) -> bool:
    """Whether uniform secrets are split as the product says."""
    generator = np.random.default_rng(_SEED)
    drawn = [[alphabet[pick] for pick in generator.integers(len(alphabet), size=_SAMPLE)] for alphabet in alphabets]
    for letters in zip(*drawn, strict=True):
        chosen = [int(step[at]) for step, at in zip(product.steps, product.path(letters), strict=True)]
        if split(letters) != [*product.prefix.tolist(), *chosen]:
            return False
    return True
