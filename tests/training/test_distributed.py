"""Several processes are one: the same sample, the same sums, each coordinate's noise once, the same weights."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.training.noise import BLOCK, add_noise, poisson_sample
from atdp_cli.training.parallel.ranks import Ranks, local_items
from tests.training.ranked import ADAM, RECORDS, STAGES, alone, plan_of, together

WHOLE = [(stage, "tied", False) for stage in STAGES] + [("private", "adapter", False)]
PARTED = [("private", "tied", True), ("private", "untied", True), ("rare", "llama", True)]
PARTED += [("noise", "untied", True), ("plain", "tied", True), ("private", "adapter", True)]

TOLERANCE = 1e-5


@given(st.integers(1, 9), st.lists(st.integers()))
def test_every_item_belongs_to_one_process(size: int, items: list[int]) -> None:
    shares = [local_items(Ranks(rank=rank, size=size), items) for rank in range(size)]
    assert sorted(number for own in shares for number in own) == sorted(items)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_a_stream_that_skips_is_where_one_that_draws_would_be(moves: list[tuple[int, int]]) -> None:
    skipping, drawing = insecure_stream(1, "noise"), insecure_stream(1, "noise")
    for skipped, drawn in moves:
        skipping.skip(skipped)
        drawing.uniforms(skipped)
        assert (skipping.uniforms(drawn) == drawing.uniforms(drawn)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_each_coordinate_has_the_noise_of_one_process_and_of_one_alone(size: int) -> None:
    shapes = [(3,), (BLOCK + 1,), (5, 7), (2 * BLOCK,), (1,)]

    def noise(ranks: Ranks) -> list[torch.Tensor]:
        parts = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
        add_noise(parts, 0.3, insecure_stream(4, "noise"), ranks)
        return parts

    shares = [noise(Ranks(rank=rank, size=size)) for rank in range(size)]
    for place, expected in enumerate(noise(Ranks())):
        actual = torch.stack([own[place] for own in shares])
        assert ((actual != 0).sum(0) == 1).all()
        assert torch.equal(actual.sum(0), expected)


def test_the_rare_stage_has_samples_that_leave_processes_without_a_record() -> None:
    """What the next tests rest on."""
    plan, stream = plan_of(ADAM, batch=1), insecure_stream(0, "sample")
    assert plan.sampling_rate is not None
    sizes = [len(poisson_sample(RECORDS, plan.sampling_rate, stream)) for _ in range(plan.steps)]
    assert min(sizes) == 0
    assert 1 in sizes


ALL_RUNS = [*WHOLE, *PARTED]
SOME = [("private", "tied", False), ("rare", "tied", False), ("private", "untied", True), ("plain", "tied", True)]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("size", "runs"), [(2, SOME), *(pytest.param(size, ALL_RUNS, marks=pytest.mark.deep) for size in (2, 4))]
)
def test_several_processes_leave_the_weights_of_one(
    tmp_path: Path, size: int, runs: list[tuple[str, str, bool]]
) -> None:
    together(size, tmp_path, runs)
    by_one = {pair: alone(*pair, tmp_path) for pair in dict.fromkeys((stage, model) for stage, model, _ in runs)}
    for stage, model, sharded in runs:
        actual = [load_file(tmp_path / f"{stage} {model} {sharded} {rank}") for rank in range(size)]
        weights, result = by_one[stage, model]
        norms = torch.tensor([-1.0 if norm is None else norm for norm in result.mean_norms])
        for name, expected in (weights | {"norms": norms}).items():
            assert all(torch.equal(loaded[name], actual[0][name]) for loaded in actual), (stage, model, sharded, name)
            torch.testing.assert_close(
                actual[0][name], expected, rtol=TOLERANCE, atol=TOLERANCE, msg=f"{stage} {model} {sharded} {name}"
            )
        journal = tmp_path / f"journal {stage} {model} alone"
        if journal.exists():
            for rank in range(size):
                said = tmp_path / f"journal {stage} {model} {sharded} {rank}"
                assert read_journal(said) == read_journal(journal)
