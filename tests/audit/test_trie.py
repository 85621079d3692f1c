"""The trie's scores against naive scoring of every candidate's whole sequence."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
)

from atdp_cli.audit.canary import Target, parse_template
from atdp_cli.audit.exposure import rank_of
from atdp_cli.audit.pool import PADDING, Candidates, tokenise
from atdp_cli.audit.results import Verdict
from atdp_cli.audit.trie import build_trie, score_pool
from atdp_cli.errors import RunError, UsageError
from atdp_cli.events import Event, NodesScored
from atdp_cli.model.windows import encode_record
from tests.audit.scores import audit_scores

from .conftest import gpt2, llama

Scores = NDArray[np.float64]


def naive(model: Any, sequences: list[list[int]], shared: int) -> Scores:
    """log p of every sequence after its first `shared` tokens: one full forward pass each, in batches."""
    scores = np.zeros(len(sequences))
    for size in {len(sequence) for sequence in sequences}:
        chosen = [i for i, sequence in enumerate(sequences) if len(sequence) == size]
        for start in range(0, len(chosen), 100):
            part = chosen[start : start + 100]
            ids = torch.tensor([sequences[i] for i in part])
            with torch.no_grad():
                log_p = torch.log_softmax(model(input_ids=ids, use_cache=False).logits.double(), dim=-1)
            own = log_p[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0]
            scores[part] = own[:, shared - 1 :].sum(dim=1).numpy()
    return scores


def candidates_of(rows: list[list[int]], prefix: list[int]) -> Candidates:
    longest = max(map(len, rows))
    tails = np.full((len(rows), longest), PADDING, dtype=np.int32)
    for row, ids in zip(tails, rows, strict=True):
        row[: len(ids)] = ids
    lengths = np.array([len(ids) for ids in rows], dtype=np.int32)
    return Candidates(prefix=np.array(prefix, dtype=np.int32), tails=tails, lengths=lengths)


def sequences_of(candidates: Candidates) -> list[list[int]]:
    pairs = zip(candidates.tails.tolist(), candidates.lengths.tolist(), strict=True)
    return [[*candidates.prefix.tolist(), *tail[:length]] for tail, length in pairs]


def ranks(scores: Scores) -> NDArray[np.intp]:
    return np.argsort(np.argsort(-scores, kind="stable"), kind="stable")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("family", [gpt2, llama])
@pytest.mark.parametrize("text", ["My ID is {digits:4}", "My ID is {digits:3}.", "{hex:3}"])
def test_every_rank_and_score_is_that_of_naive_scoring(family: Any, text: str, bpe: Any) -> None:
    template = parse_template(text)
    candidates = tokenise(bpe, template)
    sequences = [encode_record(bpe, record) for record in template.candidates()]
    model = family(len(bpe))
    single = score_pool(model, candidates)
    expected = naive(model.double(), sequences, candidates.prefix.size)
    assert np.array_equal(ranks(score_pool(model, candidates)), ranks(expected))
    assert np.abs(score_pool(model, candidates) - expected).max() < 1e-10
    assert np.abs(single - expected).max() < 1e-4
    assert expected.std() > 0.5, "a flat model would prove little"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("tokenizer", "family"),
    [("gpt2_tokenizer", gpt2), ("stories_tokenizer", llama)],
)
def test_real_tokenizers_keep_every_rank(tokenizer: str, family: Any, request: pytest.FixtureRequest) -> None:
    loaded = request.getfixturevalue(tokenizer)
    template = parse_template("My ID is {digits:3}")
    candidates = tokenise(loaded, template)
    model = family(len(loaded))
    single = score_pool(model, candidates)
    expected = naive(
        model.double(),
        [encode_record(loaded, candidate) for candidate in template.candidates()],
        candidates.prefix.size,
    )
    assert np.array_equal(ranks(score_pool(model, candidates)), ranks(expected))
    assert np.abs(single - expected).max() < 1e-4


def neox(vocabulary: int) -> Any:
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=vocabulary, max_position_embeddings=64, **shape)).eval()


def opt(vocabulary: int) -> Any:
    torch.manual_seed(0)
    shape = {
        "hidden_size": 32,
        "word_embed_proj_dim": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "ffn_dim": 64,
    }
    return OPTForCausalLM(OPTConfig(vocab_size=vocabulary, max_position_embeddings=64, **shape)).eval()


def sliding(vocabulary: int) -> Any:
    """Attention over the last four tokens alone, fewer than the prefix has."""
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    settings = {"num_key_value_heads": 1, "sliding_window": 4, "max_position_embeddings": 64}
    return MistralForCausalLM(MistralConfig(vocab_size=vocabulary, **shape, **settings)).eval()


def mamba(vocabulary: int) -> Any:
    """A recurrent state in place of keys and values: no rows to choose, so every path is run whole."""
    torch.manual_seed(0)
    return MambaForCausalLM(
        MambaConfig(vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, state_size=4)
    ).eval()


@pytest.mark.parametrize("family", [neox, opt, sliding, mamba])
def test_other_families_score_as_naively(family: Any, bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is number {digits:3}"))
    model = family(len(bpe))
    expected = naive(model, sequences_of(candidates), candidates.prefix.size)
    assert candidates.prefix.size > 4
    assert np.abs(score_pool(model, candidates) - expected).max() < 1e-4


@st.composite
def token_rows(draw: st.DrawFn) -> list[list[int]]:
    """Short sequences over few tokens: duplicates, prefixes of each other and empty ones are common."""
    return draw(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=25))


MODEL = gpt2(8)


@settings(max_examples=80, deadline=None)
@given(rows=token_rows(), batch_size=st.sampled_from([1, 2, 5, None]))
def test_duplicates_and_candidates_that_begin_others_are_scored(rows: list[list[int]], batch_size: int | None) -> None:
    candidates = candidates_of(rows, [7, 5])
    actual = score_pool(MODEL, candidates, batch_size=batch_size)
    assert np.abs(actual - naive(MODEL, sequences_of(candidates), 2)).max() < 1e-5
    for i, row in enumerate(rows):
        assert all(actual[j] == actual[i] for j, other in enumerate(rows) if other == row)
        assert row or actual[i] == 0


@pytest.mark.ci
@settings(max_examples=80, deadline=None)
@given(rows=token_rows(), data=st.data())
def test_a_floor_leaves_out_what_scores_below_it_and_changes_nothing_else(rows: list[list[int]], data: Any) -> None:
    candidates = candidates_of(rows, [7, 5])
    full = score_pool(MODEL, candidates, batch_size=1)
    floor = data.draw(st.floats(-12, 0) | st.sampled_from(full.tolist()))
    heard = list[Event]()
    actual = score_pool(MODEL, candidates, floor=floor, batch_size=1, notify=heard.append)
    assert np.array_equal(actual, np.where(full >= floor, full, -np.inf))
    paths = {tuple(row[:depth]) for row in rows for depth in range(len(row))}
    scores = score_pool(MODEL, candidates_of([list(path) for path in paths], [7, 5]), batch_size=1) if paths else full
    assert len(heard) == (np.count_nonzero(scores >= floor) if paths else 0)


@settings(max_examples=200, deadline=None)
@given(token_rows())
def test_the_trie_holds_each_distinct_path_once(rows: list[list[int]]) -> None:
    candidates = candidates_of(rows, [])
    trie = build_trie(candidates.tails, candidates.lengths)
    paths = {tuple(row[:depth]) for row in rows for depth in range(len(row) + 1)}
    assert sum(level.row.size for level in trie.levels) == len(paths)
    assert trie.inner_nodes == len({path[:-1] for path in paths if path})
    assert len(trie.rows) == len({tuple(row) for row in rows})
    for depth, level in enumerate(trie.levels):
        actual = [tuple(path.tolist()) for path in trie.rows[level.row, :depth]]
        assert actual == sorted(path for path in paths if len(path) == depth)
    for i, row in enumerate(rows):
        assert trie.rows[trie.row_of[i], : len(row)].tolist() == row


def test_a_tokenizer_that_confuses_letters_gives_ties(characters: Any) -> None:
    """Case folded and most letters unknown: the candidates are far more than their token sequences."""
    template = parse_template("My {letters:2}")
    candidates = tokenise(characters, template)
    scores = score_pool(gpt2(len(characters)), candidates)
    assert np.unique(scores).size == 5 * 5
    index = template.index_of(("qz",))
    actual = rank_of(scores, candidates.lengths, index)
    assert actual.rank_max - actual.rank_min + 1 == 22 * 22


@pytest.mark.parametrize("batch_size", [1, 3, 17, 1000])
def test_the_shape_of_batches_changes_nothing(batch_size: int, bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:3}"))
    model = llama(len(bpe))
    assert np.abs(score_pool(model, candidates, batch_size=batch_size) - score_pool(model, candidates)).max() < 1e-4


def test_progress_counts_every_inner_node_once(bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:3}"))
    heard = list[Event]()
    score_pool(gpt2(len(bpe)), candidates, name="mine", batch_size=8, notify=heard.append)
    total = build_trie(candidates.tails, candidates.lengths).inner_nodes
    assert heard[-1] == NodesScored(model="mine", done=total, total=total)
    assert len(heard) > 5


def test_a_trie_can_serve_many_models(bpe: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:3}"))
    trie = build_trie(candidates.tails, candidates.lengths)
    for model in (gpt2(len(bpe)), llama(len(bpe))):
        assert np.array_equal(score_pool(model, candidates, trie=trie), score_pool(model, candidates))


def test_the_model_is_left_as_it_was(bpe: Any) -> None:
    model = gpt2(len(bpe))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    score_pool(model, tokenise(bpe, parse_template("My ID is {digits:2}")))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_damaged_weights_cannot_be_completed(value: float, bpe: Any) -> None:
    model = gpt2(len(bpe), tie_word_embeddings=False)
    with torch.no_grad():
        model.lm_head.weight[5, 5] = value
    with pytest.raises(RunError) as caught:
        score_pool(model, tokenise(bpe, parse_template("My ID is {digits:2}")), name="m")
    assert caught.value.exit_code == 3


def test_what_cannot_be_ranked_is_refused(bpe: Any, characters: Any) -> None:
    candidates = tokenise(bpe, parse_template("My ID is {digits:2}"))
    cases = [
        (gpt2(len(bpe)).bfloat16(), candidates, "half precision"),
        (gpt2(len(bpe)).half(), candidates, "half precision"),
        (gpt2(len(bpe)).train(), candidates, "training mode"),
        (gpt2(len(bpe), n_positions=4), candidates, "context"),
        (gpt2(20), candidates, "vocabulary"),
        (gpt2(len(characters)), tokenise(characters, parse_template("{digits:2}")), "beginning token"),
    ]
    for model, pool, word in cases:
        with pytest.raises(UsageError) as caught:
            score_pool(model, pool)
        assert word in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.ci
def test_canaries_that_a_model_was_trained_on_fail_and_trained_away_from_fail_too(bpe: Any) -> None:
    """Towards the secrets they become the likeliest candidates, away from them the least likely."""
    template = parse_template("My ID is {digits:4}")
    candidates = tokenise(bpe, template)
    indices = np.random.default_rng(1).integers(template.pool, size=10)
    secrets = [template.secret(int(index)) for index in indices]
    targets = [Target(index=int(index), repeats=1) for index in indices]
    # Away goes faster than towards, and too far away all candidates are alike.
    for sign, steps in ((1, 60), (-1, 25)):
        model = gpt2(len(bpe), initializer_range=0.02)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            for secret in secrets:
                ids = torch.tensor([encode_record(bpe, template.record(secret))])
                (sign * model(input_ids=ids, labels=ids).loss).backward()
            optimizer.step()
        audit = audit_scores("m", score_pool(model, candidates), candidates.lengths, targets)
        assert audit.verdict is Verdict.FAIL


@pytest.mark.deep
def test_a_pool_of_a_million(bpe: Any) -> None:
    template = parse_template("My ID is {digits:6}")
    candidates = tokenise(bpe, template)
    model = llama(len(bpe), hidden_size=48)
    scores = score_pool(model, candidates)
    sample = np.random.default_rng(0).integers(template.pool, size=2000)
    sequences = [encode_record(bpe, template.record(template.secret(int(index)))) for index in sample]
    assert np.abs(scores[sample] - naive(model.double(), sequences, candidates.prefix.size)).max() < 1e-4
