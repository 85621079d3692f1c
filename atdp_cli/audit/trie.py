"""Exact log-probabilities of a whole pool of candidates; shared prefixes are computed once."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.pool import PADDING, Candidates, Ids
from atdp_cli.errors import RunError, UsageError
from atdp_cli.events import NodesScored, Notify, ignore
from atdp_cli.model.checkpoint import context_length

Places = NDArray[np.int64]

# Bytes of one batch. The allocator returns a tensor of 32 MiB or more to the system at once, and the next one
# is then several times slower to fill.
_LOGITS = 24 * 2**20
_CACHES = 256 * 2**20
# Bytes of logits that are normalised at once: few enough that their copy in float64 stays in the cache.
_PIECE = 2 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrieLevel:
    """The nodes of one depth, in lexicographic order of their paths; depth 0 is the root alone.

    Attributes:
        token: The last token of each node's path, shape [nodes].
        row: The first of the sorted rows under each node, shape [nodes].
        ends: Whether that row ends at the node, shape [nodes].
        children: Where each node's children begin in the next level, shape [nodes + 1].
    """

    token: Ids
    row: Places
    ends: NDArray[np.bool_]
    children: Places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trie:
    """The tails of all candidates as a trie.

    Attributes:
        levels: By depth, from the root's.
        rows: The distinct tails, sorted, filled up with `PADDING`, shape [rows, longest].
        row_of: Which row each candidate is, shape [pool].
    """

    levels: tuple[TrieLevel, ...]
    rows: Ids
    row_of: Places

    @property
    def inner_nodes(self) -> int:
        """Nodes with children: each costs one position of one forward pass."""
        return sum(int(np.count_nonzero(np.diff(level.children))) for level in self.levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visit:
    """A batch of inner nodes of one depth that waits for its forward pass.

    Attributes:
        depth: Of the nodes; 0 is the root, which is the prefix.
        nodes: Which nodes of that level, shape [batch].
        scores: log p of each node's path, shape [batch].
        parents: Each node's row in `cache`, shape [batch].
        cache: Keys and values of the parents' paths, or None for models whose cache has no rows to choose.
    """

    depth: int
    nodes: Places
    scores: Scores
    parents: Places
    cache: DynamicCache | None


def build_trie(tails: Ids, lengths: Ids) -> Trie:
    """Build the trie over token sequences.

    Sorted, the rows under any node are neighbours, so a node is a place where a row first differs from the
    row before it. Equal sequences become one row.

    Args:
        tails: Shape [pool, longest], filled up with `PADDING`.
        lengths: Tokens of each, shape [pool].
    """
    pool, longest = tails.shape
    order = np.lexsort(tails.T[::-1]) if longest else np.arange(pool)
    ordered = tails[order]
    differs = ordered[1:] != ordered[:-1]
    distinct = np.concatenate(([True], differs.any(axis=1)))
    row_of = np.empty(pool, dtype=np.int64)
    row_of[order] = np.cumsum(distinct) - 1
    rows, sizes = ordered[distinct], lengths[order][distinct]
    # Row i shares its first `shared[i]` tokens with row i - 1; the first row shares not even the root.
    first = np.argmax(rows[1:] != rows[:-1], axis=1) if longest else np.empty(0, dtype=np.int64)
    shared = np.concatenate(([-1], first))
    starts = [np.flatnonzero((sizes >= depth) & (shared < depth)) for depth in range(longest + 1)]
    levels = []
    for depth, row in enumerate(starts):
        below = starts[depth + 1] if depth < longest else np.empty(0, dtype=np.int64)
        levels.append(
            TrieLevel(
                token=rows[row, depth - 1] if depth else np.full(1, PADDING, dtype=np.int32),
                row=row,
                ends=sizes[row] == depth,
                children=np.searchsorted(below, np.append(row, len(rows))),
            )
        )
    return Trie(levels=tuple(levels), rows=rows, row_of=row_of)


def score_pool(
    model: PreTrainedModel,
    candidates: Candidates,
    *,
    floor: float = -np.inf,
    trie: Trie | None = None,
    name: str = "the model",
    batch_size: int | None = None,
    notify: Notify = ignore,
) -> Scores:
    """log p(tail | prefix) of every candidate that reaches `floor`, by running each inner node of their trie once.

    A node's score is that of its path, and no candidate under it scores higher: every term of the sum is at
    most 0, in floating point as well, so a node below the floor is left out with all that is under it.

    The prefix runs once. A node's one position of logits scores all of its children: log-probabilities are
    taken in the model's precision with a normaliser summed in float64, and summed along the path in
    float64. The trie is walked depth first in batches, so that at most one batch of keys and values per
    depth is alive.

    Args:
        model: A causal language model in evaluation mode, float32 or float64.
        candidates: By the model's own tokenizer.
        floor: In nats, at most 0; -inf scores every candidate.
        trie: `build_trie(candidates.tails, candidates.lengths)`, where several models share it.
        name: Of the model, for progress and errors.
        batch_size: Nodes a forward pass; None takes what keeps memory under about 300 MiB beside the model.
        notify: Hears `NodesScored` after every batch; its total counts the nodes below the floor as well.

    Returns:
        Natural logarithms, -inf for those below the floor, shape [pool]. Candidates of equal tokens have equal
        scores.

    Raises:
        UsageError: The model is in half precision or in training mode, its context is too short, its vocabulary
            lacks a token, or the candidates have no first token in common.
        RunError: The model gives a logit that is NaN or infinite.
    """
    _check(model, candidates, name)
    trie = trie or build_trie(candidates.tails, candidates.lengths)
    scores = np.full(len(trie.rows), -np.inf)
    if trie.levels[0].ends[0]:
        scores[0] = 0  # a tail of no tokens: an empty sum
    done, total, room = 0, trie.inner_nodes, batch_size
    first = np.zeros(1, dtype=np.int64)
    root = Visit(depth=0, nodes=first, scores=np.zeros(1), parents=first, cache=None)
    waiting = [root] if total else []
    with torch.inference_mode():
        while waiting:
            visit = waiting.pop()
            logits, cache = _run(model, trie, visit, candidates.prefix)
            room = room or _fitting_batch(logits, cache, candidates)
            waiting += _expand(trie, visit, logits, cache, scores, floor=floor, room=room, name=name)
            done += visit.nodes.size
            notify(NodesScored(model=name, done=done, total=total))
    return scores[trie.row_of]


def check_context(model: PreTrainedModel, longest: int, name: str) -> None:
    """Refuse a model that reads one text and writes another, and a canary of more tokens than its context has.

    Raises:
        UsageError: It is such a model, or the canary is longer.
    """
    if model.config.is_encoder_decoder:
        raise UsageError(
            f"{name} is an encoder-decoder model, and canaries are ranked by how a model continues a text.",
            "Give a causal language model.",
        )
    context = context_length(model, longest)
    if longest > context:
        raise UsageError(
            f"A canary takes {longest} tokens, and the context of {name} has {context}.",
            "Use a shorter template.",
        )


def _check(model: PreTrainedModel, candidates: Candidates, name: str) -> None:
    if model.training:
        raise UsageError(f"{name} is in training mode, so its scores are noisy.", "Call model.eval() first.")
    if any(p.is_floating_point() and p.dtype not in (torch.float32, torch.float64) for p in model.parameters()):
        raise UsageError(
            f"{name} is loaded in half precision, in which many candidates score the same.",
            "Load it with dtype float32 to audit it.",
        )
    if candidates.prefix.size == 0:
        raise UsageError(
            "The tokenizer has no beginning token, and the candidates have no first token in common.",
            "Use a template with some words before its slot.",
        )
    longest = candidates.prefix.size + candidates.tails.shape[1]
    check_context(model, longest, name)
    largest = max(candidates.prefix.max(), candidates.tails.max(initial=PADDING))
    if largest >= model.get_input_embeddings().weight.shape[0]:
        raise UsageError(
            f"The tokenizer gives token {largest}, which the vocabulary of {name} does not have.",
            "Give the tokenizer that belongs to the model.",
        )


def _run_prefix(model: PreTrainedModel, prefix: Ids) -> tuple[torch.Tensor, DynamicCache | None]:
    """Logits [1, vocabulary] after the prefix, and its cache where rows can be chosen from it."""
    ids = torch.from_numpy(prefix.astype(np.int64)[None]).to(model.device)
    output = model(input_ids=ids, use_cache=True)
    cache = getattr(output, "past_key_values", None)
    return output.logits[:, -1], cache if has_rows(cache) else None


def has_rows(cache: DynamicCache | None) -> bool:
    """Whether rows can be chosen from a cache without touching it; from recurrent states, for one, they cannot."""
    return (
        cache is not None
        and type(cache) is DynamicCache
        and all(
            type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) and layer.keys is not None
            for layer in cache.layers
        )
    )


def _run(model: PreTrainedModel, trie: Trie, visit: Visit, prefix: Ids) -> tuple[torch.Tensor, DynamicCache | None]:
    """Logits [batch, vocabulary] after each node's path, and the cache of these paths."""
    if visit.depth == 0:
        return _run_prefix(model, prefix)
    level = trie.levels[visit.depth]
    if visit.cache is None:
        paths = trie.rows[level.row[visit.nodes], : visit.depth]
        shared = np.broadcast_to(prefix, (len(paths), prefix.size))
        whole = torch.from_numpy(np.concatenate([shared, paths], axis=1, dtype=np.int64))
        return model(input_ids=whole.to(model.device), use_cache=False).logits[:, -1], None
    last = torch.from_numpy(level.token[visit.nodes].astype(np.int64)[:, None])
    cache = _choose(visit.cache, visit.parents)
    output = model(input_ids=last.to(model.device), past_key_values=cache, use_cache=True)
    return output.logits[:, -1], cache


def _choose(cache: DynamicCache, rows: Places) -> DynamicCache:
    """Copy the given rows of a cache. The layers grow by making new tensors, so the original stays as it is."""
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    chosen.batch_select_indices(torch.from_numpy(rows).to(cache.layers[0].keys.device))
    return chosen


def _expand(
    trie: Trie,
    visit: Visit,
    logits: torch.Tensor,
    cache: DynamicCache | None,
    scores: Scores,
    *,
    floor: float,
    room: int,
    name: str,
) -> list[Visit]:
    """Score the children of the visited nodes into `scores`, and lists the visits to those with children.

    Children below the floor are passed over.
    """
    begin = trie.levels[visit.depth].children[visit.nodes]
    counts = trie.levels[visit.depth].children[visit.nodes + 1] - begin
    parents = np.repeat(np.arange(visit.nodes.size), counts)
    nodes = np.arange(parents.size) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
    below = trie.levels[visit.depth + 1]
    reached = visit.scores[parents] + _log_p(logits, parents, below.token[nodes], name)
    kept = np.flatnonzero(reached >= floor)
    parents, nodes, reached = parents[kept], nodes[kept], reached[kept]
    ending = below.ends[nodes]
    scores[below.row[nodes[ending]]] = reached[ending]
    inner = np.flatnonzero(below.children[nodes + 1] > below.children[nodes])
    chunks = [inner[start : start + room] for start in range(0, inner.size, room)]
    # The last of the stack is next, so the chunks go on it backwards.
    return [
        Visit(
            depth=visit.depth + 1,
            nodes=nodes[chunk],
            scores=reached[chunk],
            parents=parents[chunk],
            cache=cache,
        )
        for chunk in reversed(chunks)
    ]


def _log_p(logits: torch.Tensor, rows: Places, tokens: Ids, name: str) -> Scores:
    """log softmax(logits)[rows, tokens] in float64."""
    few = max(1, _PIECE // (logits.shape[1] * logits.element_size()))
    pieces = [logits[start : start + few] for start in range(0, len(logits), few)]
    normalisers = torch.cat([_normalisers(piece, name) for piece in pieces])
    where = torch.from_numpy(rows).to(logits.device)
    chosen = logits[where, torch.from_numpy(tokens.astype(np.int64)).to(logits.device)].double()
    log_p: Scores = (chosen - normalisers[where]).cpu().numpy()
    return log_p


def _normalisers(logits: torch.Tensor, name: str) -> torch.Tensor:
    """log(sum(exp)) of each row, the sum in float64; no less than the row's largest."""
    # Not aminmax: along a dimension it is twenty times slower than these two.
    high = logits.amax(-1, keepdim=True)
    if not (torch.isfinite(high).all() and torch.isfinite(logits.amin(-1)).all()):
        raise damaged_logits(name)
    return (logits - high).exp_().sum(-1, dtype=torch.float64).log_() + high[:, 0].double()


def damaged_logits(name: str) -> RunError:
    """The error for a model that gives a logit that is NaN or infinite."""
    return RunError(f"{name} gives a logit that is NaN or infinite.", "Check the checkpoint: its weights are damaged.")


def _fitting_batch(logits: torch.Tensor, cache: DynamicCache | None, candidates: Candidates) -> int:
    """How many nodes a batch may have for its logits, and a few depths of keys and values, to stay small."""
    positions = candidates.prefix.size + candidates.tails.shape[1]
    if cache is None:
        return int(max(1, _LOGITS // (logits.nbytes * positions)))
    kept = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) // candidates.prefix.size
    return int(max(1, min(_LOGITS // logits.nbytes, _CACHES // (4 * kept * positions))))
