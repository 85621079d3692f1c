"""Sums over records: removing one moves what is computed by at most C(1 + β(n))."""

import itertools
import math
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from torch.nn.utils import parameters_to_vector

from atdp_cli.errors import InputError, RunError
from atdp_cli.events import ChoiceWarning, Event, ignore
from atdp_cli.model.device import move_model
from atdp_cli.privacy.journal import open_journal, read_journal
from atdp_cli.privacy.pld import largest_sample, refuse_larger
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.training.clip import ghost, opacus, per_record
from atdp_cli.training.clip import select as selection
from atdp_cli.training.clip.engine import SAME_BITS, ClippedSum, ClippingEngine, sensitivity, zeros_of
from atdp_cli.training.clip.self_check import STATED_EFFECT
from atdp_cli.training.examples import Example
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.ranks import Ranks, local_items
from atdp_cli.training.precision import in_precision
from atdp_cli.training.recipe import SGD
from atdp_cli.training.trainer import Randomness, run_private
from tests.training.clipping.models import build, record
from tests.training.ranked import RECORDS, plan_of
from tests.training.stages import stage_run
from tests.training.test_clipping import distance, gpt2

C = 0.1
ENGINES: dict[str, Any] = {
    "ghost": partial(ghost.clipped_sum, tokens=4096, positions=False),
    "opacus": partial(opacus.clipped_sum, tokens=4096, positions=False),
    "per-record": per_record.clipped_sum,
}


def check_removals(engine: ClippingEngine, records: list[Example], rows: list[int], model: Any) -> None:
    """Removing a record moves the sum by at most C(1 + β(n)), and by what that record adds alone.

    The second is the stricter: errors that happen to shorten the way do not hide.
    """
    n, whole = len(records), engine(model, records, C)
    for row in rows:
        less, alone = engine(model, records[:row] + records[row + 1 :], C), engine(model, [records[row]], C)
        assert distance(whole.gradient, less.gradient) <= sensitivity(C, n, 0.0)
        moved = [part - other for part, other in zip(whole.gradient, less.gradient, strict=True)]
        assert distance(moved, alone.gradient) <= n * SAME_BITS * C


@pytest.mark.parametrize(
    ("name", "n"),
    [
        *(pytest.param(name, 1024, marks=pytest.mark.ci) for name in ("ghost", "opacus")),
        *(
            pytest.param(*case, marks=pytest.mark.deep)
            for case in (("per-record", 1024), ("ghost", 16384), ("opacus", 16384))
        ),
    ],
)
def test_removing_one_of_many_records_near_the_bound(name: str, n: int) -> None:
    """All alike, so that the sum is n times as long as what one adds, and its rounding as large as it gets.

    In fp32 the sum moved by up to C(1 + 1.7e-5) for 1,024 records and C(1 + 5.8e-4) for 16,384.
    """
    model = build("Llama")
    records = [record(4, seed=1, scale=100)] * n
    assert float(ENGINES["per-record"](model, records[:1], C).norms[0]) > C
    assert sensitivity(C, n, 0.0) <= C * (1 + 2e-4)
    check_removals(ENGINES[name], records, [n // 2], model)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["ghost", pytest.param("opacus", marks=pytest.mark.ci)])
def test_removing_one_record_of_any_batch(name: str, precision: Precision) -> None:
    """The others' gradients stay: they are padded, masked and rounded as before."""
    model, draw = build("Llama"), random.Random(5)
    engine = in_precision(precision, ENGINES[name])
    for seed in range(6):
        lengths = [tuple(draw.choices(range(2, 32), k=draw.choice((1, 1, 2)))) for _ in range(draw.randint(2, 30))]
        records = [record(*length, seed=100 * seed + row, scale=100) for row, length in enumerate(lengths)]
        check_removals(engine, records, draw.sample(range(len(records)), 2), model)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_record_adds_the_same_beside_any_others(precision: Precision) -> None:
    """With and without a batch around it: what the others add is taken away exactly, as they have no weight."""
    model, draw = build("GPT-2"), random.Random(7)
    engine = in_precision(precision, partial(ghost.clipped_sum, tokens=4096, positions=True))
    for seed in range(12):
        example = record(*draw.choices(range(2, 32), k=draw.choice((1, 3))), seed=seed)
        others = [record(draw.randint(2, 31), seed=100 + row, scale=0.0) for row in range(draw.randint(1, 40))]
        place = draw.randint(0, len(others))
        alone, beside = engine(model, [example], C), engine(model, [*others[:place], example, *others[place:]], C)
        assert distance(alone.gradient, beside.gradient) <= 2.0**-40 * C
        assert beside.norms[place] == pytest.approx(float(alone.norms[0]), rel=2.0**-40)


@pytest.mark.parametrize("size", [2, 3])
def test_removing_one_record_that_moves_the_others_to_other_processes(size: int) -> None:
    """Each process adds up its own share, and the shares of D and of D' have hardly a record in common."""
    model, draw = build("Llama"), random.Random(3)
    records = [record(draw.randint(2, 31), seed=seed, scale=100) for seed in range(60)]

    def engine(model: Any, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        shares = [local_items(Ranks(rank=rank, size=size), records) for rank in range(size)]
        parts = [ENGINES["ghost"](model, share, clip_norm) for share in shares]
        assert {part.dtype for part in parts[0].gradient} == {torch.float64}
        sums = [torch.stack(part).sum(0) for part in zip(*(clipped.gradient for clipped in parts), strict=True)]
        return ClippedSum(tuple(sums), parts[0].norms)

    check_removals(engine, records, [0, 7, 30], model)


@given(st.integers(1, 20_000), st.floats(1e-4, 1.0))
@settings(max_examples=50)
def test_the_largest_sample_is_the_first_that_chance_does_not_pass(records: int, rate: float) -> None:
    actual = largest_sample(records, rate)
    assert actual <= records
    assert binom.sf(actual, records, rate) <= math.exp(-50)
    assert actual == 0 or binom.sf(actual - 1, records, rate) > math.exp(-50) or rate >= 1
    refuse_larger(actual, actual)
    with pytest.raises(RunError, match="above the"):
        refuse_larger(actual + 1, actual)


def test_the_largest_sample_by_hand() -> None:
    """Summed up from the binomial coefficients, in whole numbers."""
    records, rate = 200, 0.125
    weights = [math.comb(records, k) * 7 ** (records - k) for k in range(records + 1)]
    tails = np.cumsum([weight / 8**records for weight in reversed(weights)])[::-1]  # P(K ≥ k)
    assert largest_sample(records, rate) + 1 == int(np.argmax(tails <= math.exp(-50)))


def test_sensitivity_grows_with_the_records_and_with_the_effect_of_batches() -> None:
    assert sensitivity(C, 1, 0.0) == pytest.approx(C, rel=1e-8)
    assert sensitivity(C, 1000, 2.0**-14) == pytest.approx(C * (1 + 1000 * 2.0**-14), rel=1e-5)
    grown = [sensitivity(C, n, 0.0) for n in (1, 100, 10_000)]
    assert grown == sorted(grown)
    assert sensitivity(3 * C, 100, 1e-6) == pytest.approx(3 * sensitivity(C, 100, 1e-6))


def in_fp64(model: Any) -> bool:
    """Whether rounding is far too small to matter here."""
    return bool(next(iter(model.parameters())).dtype == torch.float64)


def coupled(by: float) -> Any:
    """Bookkeeping on a device whose kernels round otherwise in a batch of several records, by this share."""

    def clipped_sum(model: Any, records: Sequence[Example], clip_norm: float, *, tokens: int, **_: Any) -> ClippedSum:
        actual = ghost.clipped_sum(model, records, clip_norm, tokens=tokens, positions=False)
        if len(records) > 1 and tokens > 1 and not in_fp64(model):
            for part in actual.gradient:
                part.mul_(1 + by)
        return actual

    return clipped_sum


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("by", "precision", "stated", "alone"),
    [
        (0.0, "float32", 0.0, False),
        (STATED_EFFECT / 10, "float32", STATED_EFFECT, False),
        (STATED_EFFECT / 5, "float32", 0.0, True),
        (0.0, "bfloat16", 0.0, False),
        (STATED_EFFECT / 10, "bfloat16", 0.0, True),
    ],
)
def test_an_engine_says_what_a_batch_changes(
    monkeypatch: pytest.MonkeyPatch, by: float, precision: Precision, stated: float, alone: bool
) -> None:
    monkeypatch.setitem(selection._BATCHED, "ghost", coupled(by))
    reported: list[Event] = []
    model = build("Llama")
    chosen = selection.select_engine(model, "ghost", reported.append, precision=precision)
    records = [record(9, seed=seed) for seed in range(3)]
    actual = chosen.run(model, records, C)
    assert actual.batch_effect == stated
    assert bool(reported) == alone
    if alone:
        one_by_one = in_precision(precision, partial(ghost.clipped_sum, tokens=1, positions=False))
        assert distance(actual.gradient, one_by_one(model, records, C).gradient) == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("by", "stated"), [(2e-6, STATED_EFFECT), (1e-5, 2.0**-13), (3e-5, 2.0**-12), (1e-4, 2.0**-10), (2e-4, None)]
)
def test_where_bits_are_never_the_same_twice_the_noise_allows_for_it(
    monkeypatch: pytest.MonkeyPatch, by: float, stated: float | None
) -> None:
    """A gradient and the next differ by the share `by`."""
    share = itertools.cycle((0, by))

    def restless(model: Any, records: Sequence[Example], clip_norm: float, *, tokens: int, **_: Any) -> ClippedSum:
        actual = ghost.clipped_sum(model, records, clip_norm, tokens=tokens, positions=False)
        moved = 1 if in_fp64(model) else 1 - next(share)
        for part in actual.gradient:
            part.mul_(moved)
        return actual

    monkeypatch.setitem(selection._BATCHED, "ghost", restless)
    reported: list[Event] = []
    if stated is None:
        with pytest.raises(InputError, match="not the same twice"):
            selection.select_engine(build("Llama"), "ghost", ignore)
        return
    model = build("Llama")
    chosen = selection.select_engine(model, "ghost", reported.append)
    assert chosen.run(model, [record(9, seed=0)], C).batch_effect == stated >= 8 * by
    warned = [event.what for event in reported if isinstance(event, ChoiceWarning)]
    assert warned == ["noise"] * (stated > STATED_EFFECT)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_gives_the_same_bits_twice_for_a_record_with_repeated_tokens() -> None:
    model = build("Llama")
    move_model(model, torch.device("cuda"))
    many = [record(31, seed=seed, repeated=True) for seed in range(3)]
    first, *others = (ghost.clipped_sum(model, many, C, tokens=1, positions=True) for _ in range(5))
    assert all(distance(other.gradient, first.gradient) == 0 for other in others)


def test_the_noise_is_as_large_as_the_engine_says_that_a_record_reaches(tmp_path: Path) -> None:
    """Steps on empty records are noise alone; of 13 records with η = 1/13 each, one reaches 2C."""

    def moved(effect: float) -> torch.Tensor:
        def engine(model: Any, records: Sequence[Example], clip_norm: float) -> ClippedSum:
            return ClippedSum(zeros_of(model), torch.zeros(len(records)), effect)

        model = gpt2()
        before = parameters_to_vector(model.parameters()).detach()
        with open_journal(tmp_path / f"journal {effect}") as lines:
            run_private(
                stage_run(model, plan_of(SGD(learning_rate=0.5)), examples=[Example((), ())] * RECORDS),
                engine=engine,
                randomness=Randomness(sample=insecure_stream(0, "sample"), noise=insecure_stream(0, "noise")),
                journal=lines,
            )
        return parameters_to_vector(model.parameters()).detach() - before

    torch.testing.assert_close(moved(1 / RECORDS), 2 * moved(0.0), rtol=1e-4, atol=1e-6)
    assert read_journal(tmp_path / f"journal {1 / RECORDS}") == read_journal(tmp_path / "journal 0.0")
