"""Ranking of canaries by a model: the pool of candidates with its trie, their scores, and the ranks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.exposure import Lengths, Rank, Scores, rank_of
from atdp_cli.audit.hypothesis_tests import SampleRule, TokenLengthGroup
from atdp_cli.audit.pool import Candidates, sampled, tokenise, with_records
from atdp_cli.audit.product_pool import list_candidates, product_pool
from atdp_cli.audit.trie import Trie, build_trie, score_pool
from atdp_cli.errors import InputError, RunError
from atdp_cli.events import Notify, ignore
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.model.windows import encode_record, tokenizer_fingerprint

_MARGIN = 1e-3  # nats; a first guess, and one that is too small costs a second walk


def score_likeliest(
    model: PreTrainedModel,
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


CHEAP_NODES = 20_000
"""The most inner nodes of a pool that `auto` does not sample. GPT-2's tokenizer gives six digits 16,857, Llama's
111,111."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """The candidates of a template for one tokenizer.

    Attributes:
        fingerprint: Of the tokenizer.
        candidates: All of them; or a sample, and behind it the canaries' own records in the manifest's order.
        trie: Of their tails, which all models of the tokenizer share.
        sampled: Whether it is a sample.
    """

    fingerprint: str
    candidates: Candidates
    trie: Trie
    sampled: bool


def pool_of(
    tokenizer: PreTrainedTokenizerFast,
    template: Template,
    targets: Sequence[Target],
    notify: Notify,
    *,
    sample: SampleRule | None = None,
    previous: Pool | None = None,
) -> Pool:
    """The candidates that the targets are ranked among.

    Args:
        sample: When to draw how many of a pool that could be listed; None for never.
        previous: The pool of another model, used again where the tokenizer is the same.
    """
    fingerprint = tokenizer_fingerprint(tokenizer)
    if previous is not None and previous.fingerprint == fingerprint:
        return previous
    large = sampled(template)
    drawn = None if large or sample is None else _drawn(sample, tokenizer, template)
    candidates = make_candidates(tokenizer, template, sample=drawn, notify=notify)
    if large or drawn is not None:
        records = [encode_record(tokenizer, template.record(template.secret(target.index))) for target in targets]
        candidates = with_records(candidates, tokenizer, records)
    return Pool(
        fingerprint=fingerprint,
        candidates=candidates,
        trie=build_trie(candidates.tails, candidates.lengths),
        sampled=large or drawn is not None,
    )


def make_candidates(
    tokenizer: PreTrainedTokenizerFast, template: Template, *, sample: int | None, notify: Notify
) -> Candidates:
    """Tokenise the candidates, from single tokens where each character of a secret is one.

    Args:
        sample: How many are drawn; None for all of a pool that can be listed.
    """
    product = None if sample is not None or sampled(template) else product_pool(tokenizer, template)
    if product is not None:
        return list_candidates(product, template)
    return tokenise(tokenizer, template, sample=sample, notify=notify)


def _drawn(rule: SampleRule, tokenizer: PreTrainedTokenizerFast, template: Template) -> int | None:
    """The sample's size; None for the whole pool: it has no more than twice as many candidates, or is cheap."""
    if 2 * rule.size > template.pool:
        return None
    if not rule.only_where_expensive:
        return rule.size
    product = product_pool(tokenizer, template)
    if product is None:
        return None
    whole, sampled_nodes = sum(product.levels), sum(min(nodes, rule.size) for nodes in product.levels)
    return rule.size if whole > CHEAP_NODES and 2 * sampled_nodes <= whole else None


def all_scores(model: PreTrainedModel, pool: Pool, name: str, notify: Notify) -> Scores:
    """log p of every candidate, shape [candidates].

    Raises:
        RunError: The model cannot be run, or gives something that is not a number.
    """
    with scored(name):
        scores = score_pool(model, pool.candidates, trie=pool.trie, name=name, notify=notify)
    check_finite(name, scores)
    return scores


def likeliest_scores(
    model: PreTrainedModel, pool: Pool, targets: Sequence[Target], name: str, notify: Notify
) -> Scores:
    """log p of every candidate that is likely enough to bear on the targets' ranks, and -inf for the rest.

    Raises:
        RunError: As for `all_scores`.
    """
    positions = [pool_position(pool, targets, i) for i in range(len(targets))]
    with scored(name):
        scores = score_likeliest(model, pool.candidates, positions, trie=pool.trie, name=name, notify=notify)
    check_finite(name, scores[positions])
    return scores


def pool_position(pool: Pool, targets: Sequence[Target], number: int) -> int:
    """The position among the candidates of the target at `number` (from 0)."""
    return pool.candidates.lengths.size - len(targets) + number if pool.sampled else targets[number].index


def check_finite(model: str, scores: Scores) -> None:
    """Refuse scores that are infinite or NaN, which a damaged model may give.

    Raises:
        RunError: One is infinite or NaN.
    """
    if not np.isfinite(scores).all():
        raise RunError(
            f"{model} gives a candidate a probability that is zero or not a number.",
            "Check the checkpoint: its weights may be damaged.",
        )


def check_same_tokenizer(folder: Path, checkpoint: Checkpoint, fingerprint: str) -> None:
    """Refuse a model whose tokenizer is not the reference's.

    Raises:
        InputError: It is another one.
    """
    if checkpoint.tokenizer_sha256 != fingerprint:
        raise InputError(
            f"{folder} and the reference have different tokenizers.", "Give the base model that it was trained from."
        )


@contextmanager
def scored(name: str) -> Iterator[None]:
    """Say of a model that it could not be scored, where torch fails within the block.

    Raises:
        RunError: It did, also for lack of memory.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch's out of memory, or a model that its own code cannot run
        raise RunError(
            f"{name} could not be scored ({type(error).__name__}).", "Free some memory and try again."
        ) from error


def sample_length_groups(pool: Pool, targets: Sequence[Target]) -> tuple[TokenLengthGroup, ...] | None:
    """The token-length group of each target where all are ranked among one sample; None where they are not."""
    if not pool.sampled:
        return None
    drawn, own = np.split(pool.candidates.lengths, [pool.candidates.lengths.size - len(targets)])
    return tuple(
        TokenLengthGroup(tokens=int(tokens), size=int(np.count_nonzero(drawn == tokens)) + 1) for tokens in own
    )


def rank_targets(scores: Scores, pool: Pool, targets: Sequence[Target]) -> tuple[Rank, ...]:
    """The rank of each target by these scores.

    In a sample each target is ranked among the n sampled candidates and itself: p = (1 + b) / (1 + n) one-sided, with b
    of them at least as likely. Secret and sample are drawn alike, so any of the n + 1 is as likely to be the secret.
    """
    lengths = pool.candidates.lengths
    if not pool.sampled:
        return tuple(rank_of(scores, lengths, target.index) for target in targets)
    n = scores.size - len(targets)
    return tuple(
        rank_of(np.append(scores[:n], scores[n + i]), np.append(lengths[:n], lengths[n + i]), n)
        for i in range(len(targets))
    )
