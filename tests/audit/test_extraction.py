"""Extraction against naive decoding, the exact probabilities, and the defining inequality."""

from decimal import Decimal, localcontext
from math import exp, inf, log, nextafter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2
from transformers import MambaConfig, MambaForCausalLM

from atdp_cli.audit.attacks.extraction import extract, greedy_continuation, queries_needed, sample_continuations
from atdp_cli.audit.pool import PADDING, Candidates
from atdp_cli.errors import RunError

from .conftest import gpt2, llama

PREFIX = (7, 5)


def candidates_of(rows: list[tuple[int, ...]]) -> Candidates:
    tails = np.full((len(rows), max(map(len, rows))), PADDING, dtype=np.int32)
    for row, ids in zip(tails, rows, strict=True):
        row[: len(ids)] = ids
    lengths = np.array([len(ids) for ids in rows], dtype=np.int32)
    return Candidates(prefix=np.array(PREFIX, dtype=np.int32), tails=tails, lengths=lengths)


def next_log_p(model: Any, path: tuple[int, ...]) -> Any:
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*PREFIX, *path]]), use_cache=False).logits
    return torch.log_softmax(logits[0, -1].double(), dim=-1)


def exact(model: Any, rows: list[tuple[int, ...]]) -> Any:
    return np.array([sum(float(next_log_p(model, row[:i])[row[i]]) for i in range(len(row))) for row in rows])


def mamba(vocabulary: int) -> Any:
    torch.manual_seed(0)
    return MambaForCausalLM(
        MambaConfig(vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, state_size=4)
    ).eval()


FAMILIES = [gpt2, llama, mamba]


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_decoding_takes_the_likeliest_token_at_every_node(family: Any) -> None:
    model = family(12)
    path = greedy_continuation(model, PREFIX, 6)
    assert len(path) == 6
    for depth, token in enumerate(path):
        log_p = next_log_p(model, path[:depth])
        assert log_p[token] == log_p.max()


@pytest.mark.parametrize("family", FAMILIES)
def test_only_beginnings_of_the_greedy_path_are_extracted_greedily(family: Any) -> None:
    model = family(12)
    path = greedy_continuation(model, PREFIX, 4)
    rows = [path[:depth] for depth in range(5)]
    rows += [(*path[:depth], (path[depth] + 1) % 12, *path[depth + 1 :]) for depth in range(4)]
    actual = extract(model, candidates_of(rows), range(len(rows)), exact(model, rows), samples=1)
    assert [target.greedy for target in actual] == [True] * 5 + [False] * 4


@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_frequencies_are_the_exact_probabilities(family: Any) -> None:
    """Every path of two tokens, so that the counts of the longest add up as well."""
    model = family(8)
    rows = [(), *((i,) for i in range(8)), *((i, j) for i in range(8) for j in range(8))]
    log_p = exact(model, rows)
    actual = extract(model, candidates_of(rows), range(len(rows)), log_p, samples=5000, seed=3)
    for target, own in zip(actual, log_p, strict=True):
        assert target.log_p == own
        assert binomtest(target.sampled, 5000, min(1.0, exp(own))).pvalue > 1e-6
    assert (
        actual[0].sampled
        == sum(target.sampled for target in actual[1:9])
        == sum(target.sampled for target in actual[9:])
        == 5000
    )


@pytest.mark.parametrize("others", [[], [(1, 3), (4, 4, 4), (1, 2, 0)]])
def test_draws_are_independent_whatever_else_is_looked_for(others: list[tuple[int, ...]]) -> None:
    """Counts over many seeds have the binomial's mean and variance, so nothing hangs on who stops early."""
    model = gpt2(8, initializer_range=0.02)
    tail = (1, 2)
    probability = exp(exact(model, [tail])[0])
    counts = [
        sample_continuations(
            model, PREFIX, [tail, *others], samples=200, generator=torch.Generator().manual_seed(seed)
        )[0]
        for seed in range(100)
    ]
    assert binomtest(sum(counts), 20_000, probability).pvalue > 1e-6
    dispersion = np.var(counts, ddof=1) * 99 / (200 * probability * (1 - probability))
    assert chi2.sf(dispersion, 99) > 1e-6
    assert chi2.cdf(dispersion, 99) > 1e-6


def test_the_seed_decides_the_draws_and_nothing_global_does() -> None:
    model = gpt2(8)
    rows: list[tuple[int, ...]] = [(i, j) for i in range(8) for j in range(8)]
    before = torch.get_rng_state()
    first, again, other = (
        [target.sampled for target in extract(model, candidates_of(rows), range(64), exact(model, rows), seed=seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert torch.equal(before, torch.get_rng_state())


def test_targets_are_looked_up_in_the_pool_and_may_be_none() -> None:
    model = gpt2(12)
    path = greedy_continuation(model, PREFIX, 3)
    rows = [tuple(reversed(path)), (path[0],), path]
    log_p = exact(model, rows)
    actual = extract(model, candidates_of(rows), [2, 1], log_p[[2, 1]])
    assert [target.log_p for target in actual] == [log_p[2], log_p[1]]
    assert [target.greedy for target in actual] == [True, True]
    assert actual[0].sampled <= actual[1].sampled
    assert extract(model, candidates_of(rows), [], np.empty(0)) == ()


def test_a_tail_may_fill_the_context() -> None:
    """Its last token is predicted, never read."""
    model = gpt2(8, n_positions=len(PREFIX) + 2)
    path = greedy_continuation(model, PREFIX, 3)
    (actual,) = extract(model, candidates_of([path]), [0], exact(model, [path]))
    assert actual.greedy
    assert actual.sampled > 0


def test_a_memorised_canary_is_extracted_by_every_attack_and_an_unknown_one_by_none() -> None:
    secret, unknown = (1, 4, 2, 8, 5, 7), (9, 9, 9, 9, 9, 9)
    model = gpt2(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    ids = torch.tensor([[*PREFIX, *secret]])
    for _ in range(60):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    log_p = exact(model, [secret, unknown])
    known, other = extract(model, candidates_of([secret, unknown]), [0, 1], log_p)
    assert known.greedy
    assert known.sampled > 900
    assert known.queries_half == known.queries_nine_tenths == 1
    assert not other.greedy
    assert other.sampled == 0
    assert other.queries_half is not None
    assert other.queries_half > 1e6
    assert other.queries_half == queries_needed(log_p[1], 0.5)
    assert other.queries_nine_tenths == queries_needed(log_p[1], 0.9)


def enough(log_p: float, chance: float, queries: int) -> bool:
    """1 - (1 - p_z)^n >= p by multiplication, to 400 digits."""
    with localcontext(prec=400):
        return 1 - (1 - Decimal(log_p).exp()) ** queries >= Decimal(str(chance))


@settings(max_examples=300, deadline=None)
@given(
    log_p=st.one_of(st.floats(-34, 0), st.integers(1, 10**6).map(lambda n: -log(n)), st.floats(-1e-9, 0)),
    chance=st.sampled_from([0.5, 0.9, 0.001, 0.999]),
)
def test_as_many_queries_are_enough_and_one_fewer_is_not(log_p: float, chance: float) -> None:
    queries = queries_needed(log_p, chance)
    assert queries is not None
    assert queries == int(queries) >= 1
    assert enough(log_p, chance, int(queries))
    assert queries == 1 or not enough(log_p, chance, int(queries) - 1)


@pytest.mark.ci
@settings(max_examples=100, deadline=None)
@given(log_p=st.floats(-708, -34), chance=st.sampled_from([0.5, 0.9]))
def test_more_queries_than_a_float_can_count_are_the_nearest_float(log_p: float, chance: float) -> None:
    queries = queries_needed(log_p, chance)
    assert queries is not None
    assert enough(log_p, chance, int(nextafter(queries, inf)))
    assert not enough(log_p, chance, int(nextafter(queries, 0)))


def test_queries_at_the_ends() -> None:
    assert queries_needed(0.0, 0.9) == queries_needed(1e-12, 0.9) == queries_needed(-5e-324, 0.9) == 1
    assert queries_needed(-1e5, 0.5) is queries_needed(-inf, 0.5) is None
    rising = [queries_needed(-depth, 0.5) or inf for depth in np.linspace(700, 730, 61)]
    assert rising == sorted(rising)
    assert rising[0] < rising[-1] == inf
    for log_p, chance in ((float("nan"), 0.5), (-1.0, 0.0), (-1.0, 1.0)):
        with pytest.raises(ValueError, match="no number"):
            queries_needed(log_p, chance)


def test_what_cannot_be_sampled_is_refused() -> None:
    model = gpt2(12, tie_word_embeddings=False)
    pool = candidates_of([(1, 2)])
    with pytest.raises(RunError, match="not a number"):
        extract(model, pool, [0], np.array([np.nan]))
    with torch.no_grad():
        model.lm_head.weight[5, 5] = float("nan")
    with pytest.raises(RunError, match="NaN or infinite"):
        extract(model, pool, [0], np.array([-1.0]))
