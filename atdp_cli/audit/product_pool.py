"""Pools too large to list: exact ranks where every character of the secret is a token of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import log2
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from atdp_cli.audit.canary import ALPHABETS, Characters, Secret, Template
from atdp_cli.audit.exposure import Rank, Scores
from atdp_cli.audit.pool import Candidates
from atdp_cli.audit.trie import damaged_logits, score_pool
from atdp_cli.events import NodesScored, Notify, ignore
from atdp_cli.model.windows import encode_record

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

MAX_NODES = 20_000
"""Forward passes of one path for one canary. A memorised one takes dozens to hundreds."""

_SAMPLE = 10_000
_SEED = 8
_MARGIN = 1e-3  # nats, for what the shape of a batch changes
_BATCH = 256

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


def exact_rank(
    model: "PreTrainedModel",
    product: ProductPool,
    secret: Secret,
    sampled: Rank,
    *,
    pool: int,
    name: str = "the model",
    notify: Notify = ignore,
) -> Rank:
    """The exact rank in place of that within a sample, if the secret is likely enough.

    Branch and bound: nodes below the secret's own score are passed over. A secret that is not memorised would
    take as many nodes as there are candidates; beyond `MAX_NODES` the rank within the sample is returned as it is. The
    p-value stays that of the sample in any case: which of two p-values is used must not depend on the ranks.

    Args:
        model: A causal language model in evaluation mode, float32 or float64.
        secret: Fits the template that `product` was made from.
        sampled: Its rank within a sample, by log p.
        pool: Candidates that the template has.
    """
    likely = _likelier(model, product, product.path(secret), name=name, notify=notify)
    if likely is None:
        return sampled
    score, scores = likely
    above, level = int(np.count_nonzero(scores > score)), int(np.count_nonzero(scores >= score))
    exposure = log2(pool) - log2(level)
    return replace(
        sampled,
        rank_min=above + 1,
        rank_max=level,
        pool=pool,
        stratum_rank_min=above + 1,
        stratum_rank_max=level,
        stratum_size=pool,
        exposure=exposure,
        exposure_plain=exposure,
        exposure_per_token=exposure,
    )


def _learn(split: Split, base: Sequence[str], place: int, alphabet: str) -> tuple[int, dict[str, int]] | None:
    """Which token a character decides, and the token for each letter; None if it is not one token."""
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


def _likelier(
    model: "PreTrainedModel", product: ProductPool, path: Sequence[int], *, name: str, notify: Notify
) -> tuple[float, Scores] | None:
    """The secret's own score, and those of all candidates about as likely or likelier; None beyond `MAX_NODES`."""
    floor = _path_score(model, product, path, name) - _MARGIN
    # Breadth first, each level's paths whole: [nodes, depth] choices, and which of them is the secret's.
    paths, scores, is_secret = np.zeros((1, 0), dtype=np.int64), np.zeros(1), np.ones(1, dtype=np.bool_)
    done = 0
    for depth, step in enumerate(product.steps):
        done += len(paths)
        if done > MAX_NODES:
            return None
        reached = scores[:, None] + _children(model, product, paths, name)
        kept = (reached >= floor) | (is_secret[:, None] & (np.arange(step.size) == path[depth]))
        parents, chosen = np.nonzero(kept)
        paths = np.concatenate([paths[parents], chosen[:, None]], axis=1)
        scores, is_secret = reached[parents, chosen], is_secret[parents] & (chosen == path[depth])
        notify(NodesScored(model=name, done=done, total=MAX_NODES))
    return float(scores[is_secret][0]), scores


def _path_score(model: "PreTrainedModel", product: ProductPool, path: Sequence[int], name: str) -> float:
    """log p of one path."""
    ids = np.array([step[at] for step, at in zip(product.steps, path, strict=True)], dtype=np.int32)[None]
    alone = Candidates(
        prefix=product.prefix.astype(np.int32), tails=ids, lengths=np.array([ids.shape[1]], dtype=np.int32)
    )
    return float(score_pool(model, alone, name=name)[0])


def _children(model: "PreTrainedModel", product: ProductPool, paths: Tokens, name: str) -> Scores:
    """log p of each token of the next step after each path, shape [paths, tokens]."""
    depth = paths.shape[1]
    tokens = [step[paths[:, at]] for at, step in enumerate(product.steps[:depth])]
    rows = np.column_stack([np.broadcast_to(product.prefix, (len(paths), product.prefix.size)), *tokens])
    log_ps = []
    with torch.inference_mode():
        for start in range(0, len(rows), _BATCH):
            ids = torch.from_numpy(rows[start : start + _BATCH]).to(model.device)
            logits = model(input_ids=ids, use_cache=False).logits[:, -1]
            if not torch.isfinite(logits).all():
                raise damaged_logits(name)
            log_p = torch.log_softmax(logits.double(), dim=-1)
            log_ps.append(log_p[:, torch.from_numpy(product.steps[depth]).to(model.device)].cpu().numpy())
    return np.concatenate(log_ps)
