"""Ranks among all 10**6 candidates against naive scoring of every whole sequence in float64.

The real tokenizers' splits, in a vocabulary of the tokens that occur, so that the naive side takes minutes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.exposure import rank_of
from atdp_cli.audit.pool import PADDING, Candidates, tokenise
from atdp_cli.audit.rank import score_likeliest
from atdp_cli.audit.trie import build_trie, score_pool
from tests.audit.conftest import bpe, characters, gpt2, gpt2_tokenizer, llama, stories_tokenizer

__all__ = ["bpe", "characters", "gpt2_tokenizer", "stories_tokenizer"]

TEMPLATE = parse_template("My ID is {digits:6}")
# As near as fp32 must come to a log-probability; two candidates may be that far off in opposite ways.
BOUND = 1e-4


def compact(candidates: Candidates) -> tuple[Candidates, int]:
    """The candidates with the tokens that occur numbered from 0, and how many these are."""
    used = np.unique(np.append(candidates.tails[candidates.tails != PADDING], candidates.prefix))
    tails = np.where(candidates.tails == PADDING, PADDING, np.searchsorted(used, candidates.tails))
    prefix = np.searchsorted(used, candidates.prefix)
    return replace(candidates, prefix=prefix.astype(np.int32), tails=tails.astype(np.int32)), used.size


def sequences(candidates: Candidates, chosen: NDArray[np.intp], length: int) -> torch.Tensor:
    """Whole sequences of the chosen candidates, whose tails are all of that length, shape [chosen, tokens]."""
    shared = np.broadcast_to(candidates.prefix, (chosen.size, candidates.prefix.size))
    return torch.from_numpy(np.concatenate([shared, candidates.tails[chosen, :length]], axis=1, dtype=np.int64))


@torch.no_grad()
def naive(model: Any, candidates: Candidates) -> NDArray[np.float64]:
    """log p of every tail: a full forward pass over every whole sequence, in batches of equal length."""
    scores = np.zeros(candidates.lengths.size)
    for length in np.unique(candidates.lengths).tolist():
        own_length = np.flatnonzero(candidates.lengths == length)
        for start in range(0, own_length.size, 128):
            chosen = own_length[start : start + 128]
            ids = sequences(candidates, chosen, length)
            log_p = torch.log_softmax(model(input_ids=ids, use_cache=False).logits.double(), dim=-1)
            own = log_p[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0]
            scores[chosen] = own[:, candidates.prefix.size - 1 :].sum(dim=1).numpy()
    return scores


def train(model: Any, candidates: Candidates, targets: NDArray[np.intp]) -> None:
    """Teaches the targets, so that their ranks run from memorised to barely likelier than chance."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(80):
        # The first canaries are seen far more often than the last.
        seen = targets[: 1 + len(targets) * (step % 8 == 0) + len(targets) // 4]
        optimizer.zero_grad()
        for target in seen:
            ids = sequences(candidates, np.array([target]), int(candidates.lengths[target]))
            (model(input_ids=ids, labels=ids).loss / seen.size).backward()
        optimizer.step()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tokenizer", "family"),
    [("gpt2_tokenizer", gpt2), ("stories_tokenizer", llama), ("bpe", llama), ("characters", gpt2)],
)
def test_twenty_canaries_rank_as_by_naive_scoring_of_a_million(
    tokenizer: str, family: Any, request: pytest.FixtureRequest
) -> None:
    candidates, vocabulary = compact(tokenise(request.getfixturevalue(tokenizer), TEMPLATE))
    trie = build_trie(candidates.tails, candidates.lengths)
    targets = np.random.default_rng(0).integers(TEMPLATE.pool, size=20)
    model = family(vocabulary, initializer_range=0.05)
    train(model, candidates, targets[:10])
    single = score_pool(model, candidates, trie=trie)
    pruned_single = score_likeliest(model, candidates, targets[:5].tolist(), trie=trie)
    model = model.double()
    double = score_pool(model, candidates, trie=trie)
    expected = naive(model, candidates)
    wanted = {int(target): rank_of(expected, candidates.lengths, target) for target in targets}
    ranks = [rank.rank_min for rank in wanted.values()]
    assert min(ranks) <= 10, "no canary is memorised, which would prove little"
    assert max(ranks) > 10_000, "all canaries are memorised, which would prove little"

    assert np.abs(double - expected).max() < 1e-10
    assert np.abs(single - expected).max() < BOUND
    for chosen in (targets[:1].tolist(), targets[:5].tolist(), targets.tolist()):
        pruned = score_likeliest(model, candidates, chosen, trie=trie)
        assert [rank_of(pruned, candidates.lengths, target) for target in chosen] == [
            wanted[target] for target in chosen
        ]
    for target, naively in wanted.items():
        assert rank_of(double, candidates.lengths, target) == naively
        near = np.count_nonzero(np.abs(expected - expected[target]) <= 2 * BOUND) - 1
        for scores in (single, pruned_single) if target in targets[:5] else (single,):
            actual = rank_of(scores, candidates.lengths, target)
            assert naively.rank_max - near <= actual.rank_min
            assert actual.rank_max <= naively.rank_min + near
