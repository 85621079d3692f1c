"""Pruned scores against those of the whole pool: every rank the same, at fewer nodes."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.exposure import Rank, Scores, rank_of
from atdp_cli.audit.pool import Candidates, tokenise
from atdp_cli.audit.rank import lowest_needed, score_likeliest
from atdp_cli.audit.trie import build_trie, score_pool
from atdp_cli.errors import RunError, UsageError
from atdp_cli.events import Event, NodesScored
from atdp_cli.model.windows import encode_record

from .conftest import gpt2, llama
from .test_trie import candidates_of, mamba, token_rows


def peaked(seed: int) -> Any:
    """A GPT-2 over eight tokens whose candidates differ by many nats."""
    return gpt2(8, seed=seed, initializer_range=0.6)


MODELS = [peaked(seed) for seed in range(3)]


def ranks_of(scores: Scores, candidates: Candidates, targets: list[int]) -> list[Rank]:
    return [rank_of(scores, candidates.lengths, target) for target in targets]


@pytest.mark.ci
@settings(max_examples=200, deadline=None)
@given(rows=token_rows(), model=st.sampled_from(MODELS), data=st.data())
def test_every_target_stands_where_it_does_among_all_scores(rows: list[list[int]], model: Any, data: Any) -> None:
    """Batches of one node: the shape of its batch is then the same in both walks, so equal means equal."""
    candidates = candidates_of(rows, [7, 5])
    targets = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=3))
    full = score_pool(model, candidates, batch_size=1)
    pruned = score_likeliest(model, candidates, targets, batch_size=1)
    assert ranks_of(pruned, candidates, targets) == ranks_of(full, candidates, targets)
    scored = np.isfinite(pruned)
    assert np.array_equal(pruned[scored], full[scored])
    assert np.all(pruned[~scored] == -np.inf)
    assert max(full[~scored], default=-np.inf) < full[targets].min()


@pytest.mark.parametrize("family", [gpt2, llama, mamba])
def test_batches_of_any_shape_keep_every_rank(family: Any, bpe: Any) -> None:
    """In float64, where two candidates of different tokens are never as near to each other as rounding is."""
    candidates = tokenise(bpe, parse_template("My ID is {digits:3}"))
    model = family(len(bpe)).double()
    full = score_pool(model, candidates)
    order = np.argsort(-full)
    for targets in ([int(order[0])], order[:5].tolist(), [int(order[500])], [int(order[-1]), int(order[2])]):
        pruned = score_likeliest(model, candidates, targets)
        assert ranks_of(pruned, candidates, targets) == ranks_of(full, candidates, targets)


def test_a_mean_is_not_pruned_by_a_sum() -> None:
    """Two tokens at -3 each stand before one at -4 by the mean, though -6 is far below -4."""
    assert lowest_needed(np.array([-4.0]), np.array([1], dtype=np.int32), 2) == -8
    assert lowest_needed(np.array([-4.0, -1.0]), np.array([4, 4], dtype=np.int32), 4) == -4
    assert lowest_needed(np.array([0.0]), np.array([0], dtype=np.int32), 4) == 0


@pytest.mark.ci
def test_a_memorised_canary_costs_few_nodes(bpe: Any) -> None:
    template = parse_template("My ID is {digits:4}")
    candidates = tokenise(bpe, template)
    targets = [17, 4242, 9001]
    model = gpt2(len(bpe), initializer_range=0.02)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(100):
        optimizer.zero_grad()
        for target in targets:
            ids = torch.tensor([encode_record(bpe, template.record(template.secret(target)))])
            model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    trie = build_trie(candidates.tails, candidates.lengths)
    heard = list[Event]()
    pruned = score_likeliest(model, candidates, targets, trie=trie, name="mine", notify=heard.append)
    last = heard[-1]
    assert isinstance(last, NodesScored)
    assert (last.model, last.total) == ("mine", trie.inner_nodes)
    assert last.done < trie.inner_nodes / 5
    actual = ranks_of(pruned, candidates, targets)
    assert actual == ranks_of(score_pool(model, candidates, trie=trie), candidates, targets)
    assert all(rank.rank_max <= len(targets) for rank in actual), "a canary that was not memorised would prove little"


def test_the_unlikeliest_target_leaves_nothing_out() -> None:
    candidates = candidates_of([[0, 1], [0, 2], [1, 1], [3, 3]], [7, 5])
    full = score_pool(MODELS[0], candidates)
    assert np.isfinite(score_likeliest(MODELS[0], candidates, [int(full.argmin())])).all()


def test_a_tokenizer_that_confuses_letters_gives_the_same_ties(characters: Any) -> None:
    template = parse_template("My {letters:2}")
    candidates = tokenise(characters, template)
    model = gpt2(len(characters))
    target = template.index_of(("qz",))
    actual = rank_of(score_likeliest(model, candidates, [target]), candidates.lengths, target)
    assert actual == rank_of(score_pool(model, candidates), candidates.lengths, target)
    assert actual.rank_max - actual.rank_min + 1 == 22 * 22


def test_a_target_that_the_walk_scores_lower_is_found_all_the_same() -> None:
    """While the targets' own paths are scored, the model likes their tokens better, so the first floor is too high."""
    model = gpt2(8)
    rows = [[a, b] for a in range(4) for b in range(4)]
    candidates = candidates_of(rows, [7, 5])
    full = score_pool(model, candidates, batch_size=1)
    target = int(full.argmax())
    calls = [0]

    def favour(module: Any, given: Any, logits: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return logits + 5 * (torch.arange(8) < 4) if calls[0] <= 2 else logits  # after the prefix and one token

    handle = model.lm_head.register_forward_hook(favour)
    assert score_pool(model, candidates_of([rows[target]], [7, 5]), batch_size=1)[0] > full[target] + 0.1
    calls[0] = 0
    pruned = score_likeliest(model, candidates, [target], batch_size=1)
    handle.remove()
    assert rank_of(pruned, candidates.lengths, target) == rank_of(full, candidates.lengths, target)


def test_without_targets_nothing_needs_a_score(bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:2}"))
    heard = list[Event]()
    scores = score_likeliest(gpt2(len(bpe)), candidates, [], name="m", notify=heard.append)
    assert np.all(scores == -np.inf)
    assert [event.done for event in heard if isinstance(event, NodesScored)] == [1]


def test_what_cannot_be_ranked_is_refused(bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:2}"))
    for model in (gpt2(len(bpe)).bfloat16(), gpt2(len(bpe)).half(), gpt2(len(bpe)).train()):
        for targets in ([3], []):
            with pytest.raises(UsageError):
                score_likeliest(model, candidates, targets)
    damaged = gpt2(len(bpe), tie_word_embeddings=False)
    with torch.no_grad():
        damaged.lm_head.weight[5, 5] = float("nan")
    with pytest.raises(RunError):
        score_likeliest(damaged, candidates, [3])


def test_a_rank_has_no_field_that_pruning_could_change_unseen() -> None:
    """A new field of `Rank` must be weighed against `lowest_needed` before it is added here."""
    names = {field.name for field in fields(Rank)}
    ranks = {"rank_min", "rank_max", "stratum_rank_min", "stratum_rank_max", "pool", "stratum_size"}
    assert names == ranks | {"exposure", "exposure_plain", "exposure_per_token", "p_value", "tied", "unresolved"}
