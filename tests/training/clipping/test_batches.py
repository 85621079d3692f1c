"""Which records share a forward pass, and that it changes nothing."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.training.clip import ghost
from atdp_cli.training.clip.batches import MAX_PADDING, MIN_WIDTH, PhysicalBatch, padded_width, split, split_by_length
from atdp_cli.training.clip.engine import ADDED_IN_FP32
from atdp_cli.training.clip.ghost import capture
from atdp_cli.training.clip.ghost_norm import add_weighted
from atdp_cli.training.clip.layer_rules import trained_layers
from atdp_cli.training.gradients import gradient_sum
from tests.training.clipping.models import build, record, relative

LONGEST = 256
samples = st.lists(st.lists(st.integers(2, 20), max_size=3), max_size=12)


@given(samples, st.integers(1, 200), st.booleans())
def test_each_record_is_in_one_batch_with_all_its_windows(
    lengths: list[list[int]], tokens: int, by_length: bool
) -> None:
    sample = [record(*sizes, seed=seed) for seed, sizes in enumerate(lengths)]
    batches = list(split_by_length(sample, tokens) if by_length else split(sample, tokens, LONGEST))
    assert sorted(row for batch in batches for row in batch.records) == [
        row for row, sizes in enumerate(lengths) if sizes
    ]
    for batch in batches:
        assert len(batch.records) == 1 or batch.input_ids.numel() <= tokens
        pairs = [pair for row in batch.records for pair in zip(sample[row].windows, sample[row].weights, strict=True)]
        assert batch.windows == len(pairs)
        assert by_length or batch.windows % len(batch.records) == 0
        for place, (window, weights) in enumerate(pairs):
            length = len(window.token_ids)
            assert not batch.input_ids[place, length:].any()
            assert batch.input_ids[place, :length].tolist() == window.token_ids.tolist()
            assert torch.equal(batch.weights[place, :length], torch.from_numpy(weights))
            assert not batch.weights[place, length:].any()
            mask = torch.ones_like(batch.input_ids) if batch.attention_mask is None else batch.attention_mask
            assert mask[place].tolist() == [1] * length + [0] * (mask.shape[1] - length)


@given(st.lists(st.integers(2, 300), min_size=1, max_size=60), st.integers(1, 4096))
def test_a_records_shape_does_not_depend_on_the_others(lengths: list[int], tokens: int) -> None:
    sample = [record(length, seed=seed) for seed, length in enumerate(lengths)]
    for batch in split(sample, tokens, LONGEST):
        for row in batch.records:
            [alone] = split([sample[row]], tokens, LONGEST)
            assert batch.input_ids.shape[1] == alone.input_ids.shape[1]
            assert (batch.attention_mask is None) == (alone.attention_mask is None)


@given(st.lists(st.integers(2, 300), min_size=1, max_size=60), st.integers(1, 4096))
def test_filled_batches_of_a_shape_have_one_size_whatever_the_sample(lengths: list[int], tokens: int) -> None:
    sample = [record(length, seed=seed) for seed, length in enumerate(lengths)]
    for batch in split(sample, tokens, LONGEST, fill=True):
        assert batch.rows == batch.windows <= ADDED_IN_FP32
        assert not batch.weights[len(batch.records) :].any()
        for row in batch.records:
            [alone] = split([sample[row]], tokens, LONGEST, fill=True)
            assert batch.input_ids.shape == alone.input_ids.shape
            assert (batch.attention_mask is None) == (alone.attention_mask is None)


@given(st.integers(1, 5000), st.integers(1, 2048))
def test_a_window_is_padded_by_an_eighth_or_to_a_multiple_of_eight(length: int, longest: int) -> None:
    width = padded_width(length, longest)
    assert length <= width <= max(length, longest)
    assert width - length <= max(MIN_WIDTH - 1, length / 8)
    assert width >= min(MIN_WIDTH, longest)
    # Few widths, or there would be as many batches as records.
    assert len({padded_width(unpadded, 4096) for unpadded in range(1, 4097)}) < 70


@given(st.lists(st.integers(2, 100), min_size=1, max_size=40), st.integers(1, 4096))
def test_batches_by_length_are_at_most_a_quarter_padding(lengths: list[int], tokens: int) -> None:
    sample = [record(length, seed=seed) for seed, length in enumerate(lengths)]
    for batch in split_by_length(sample, tokens):
        real = sum(lengths[row] for row in batch.records)
        assert real >= (1 - MAX_PADDING) * batch.input_ids.numel()


@pytest.mark.parametrize("architecture", ["GPT-2", "Llama", "T5"])
def test_batches_by_length_have_the_sums_of_single_records(architecture: str) -> None:
    model = build(architecture).double()
    lengths = [(7,), (5, 3), (12,), (7, 7), (), (2,)]
    sample = [record(*length, seed=seed, architecture=architecture) for seed, length in enumerate(lengths)]
    single = [gradient_sum(model, [example], tokens=40) for example in sample if example.windows]
    expected = tuple(sum(parts) for parts in zip(*single, strict=True))
    assert relative(gradient_sum(model, sample, tokens=80), expected) <= 1e-6


def test_the_order_of_the_sample_changes_no_sum() -> None:
    model = build("Llama")
    sample = [record(*lengths, seed=seed) for seed, lengths in enumerate([(7,), (5, 3), (12,), (7, 7), (), (2,)])]
    order = [3, 5, 0, 4, 2, 1]
    actual = ghost.clipped_sum(model, sample, 0.05, tokens=40, positions=False)
    permuted = ghost.clipped_sum(model, [sample[row] for row in order], 0.05, tokens=40, positions=False)
    assert permuted.norms.tolist() == pytest.approx(actual.norms[order].tolist(), rel=1e-6)
    assert relative(permuted.gradient, actual.gradient) <= 1e-6


def gradients(model: Any, batch: PhysicalBatch) -> list[torch.Tensor]:
    """The gradient of each parameter of each record."""
    uses = capture(model, trained_layers(model), batch, positions=False)
    actual = []
    for parameter, used in uses.items():
        for factors in torch.eye(len(batch.records), dtype=torch.float64):
            total = torch.zeros_like(parameter)
            add_weighted(used, factors, total)
            actual.append(total)
    return actual
