"""The scores that decide the ranks of some canaries, and none of the others: branch and bound over the trie."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from atdp_cli.audit.exposure import Lengths, Scores
from atdp_cli.audit.pool import Candidates
from atdp_cli.audit.trie import Trie, build_trie, score_pool
from atdp_cli.events import Notify, ignore

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MARGIN = 1e-3  # nats; a first guess, and one that is too small costs a second walk


def score_likeliest(
    model: "PreTrainedModel",
    candidates: Candidates,
    targets: Sequence[int],
    *,
    trie: Trie | None = None,
    name: str = "the model",
    batch_size: int | None = None,
    notify: Notify = ignore,
) -> Scores:
    """log p of every candidate that may rank before or beside a target, by the sum or by the mean per token.

    `rank_of` gives every target the same rank on these scores as on all of them. A memorised target
    costs some dozens of nodes, an unlikely one about as many as the whole pool.

    The targets' own paths are scored first. A node's score depends a little on the shape of its batch, so
    the floor is set a margin below what they need; where the walk then finds that a target needs a lower
    floor than it had, the walk is repeated with a wider margin.

    Args:
        model: A causal language model in evaluation mode, float32 or float64.
        candidates: By the model's own tokenizer.
        targets: Places among the candidates.
        trie: `build_trie(candidates.tails, candidates.lengths)`, where several models share it.
        name: Of the model, for progress and errors.
        batch_size: Nodes a forward pass; None takes what keeps memory under about 300 MiB beside the model.
        notify: Hears `NodesScored` after every batch; its total counts the nodes below the floor as well.

    Returns:
        Natural logarithms, -inf for candidates that rank behind every target, shape [pool].

    Raises:
        UsageError: As `score_pool`.
        RunError: As `score_pool`.
    """
    places = np.asarray(targets, dtype=np.int64)
    lengths, longest = candidates.lengths[places], candidates.tails.shape[1]
    paths = Candidates(prefix=candidates.prefix, tails=candidates.tails[places], lengths=lengths)
    trie = trie or build_trie(candidates.tails, candidates.lengths)
    target_scores = score_pool(model, paths, name=name, batch_size=batch_size) if places.size else np.zeros(0)
    needed = lowest_needed(target_scores, lengths, longest)
    margin = _MARGIN
    while True:
        floor = needed - margin
        scores = score_pool(model, candidates, floor=floor, trie=trie, name=name, batch_size=batch_size, notify=notify)
        # Half of the margin is left for rounding here.
        if floor <= lowest_needed(scores[places], lengths, longest) - margin / 2:
            return scores
        margin *= 10


def lowest_needed(scores: Scores, lengths: Lengths, longest: int) -> float:
    """The lowest score with which some candidate may rank before or beside a target; inf without targets.

    By the mean per token a candidate of n tokens takes n * s / length against a target's s, which is lowest
    for the longest candidates, since no score is positive. By the sum it takes s, which is never lower.

    Args:
        scores: log p of each target, shape [targets].
        lengths: Tokens of each target, shape [targets].
        longest: Tokens of the longest candidate.
    """
    return float((scores / np.maximum(lengths, 1) * longest).min(initial=np.inf))
