"""What is silently wrong elsewhere: each test shows that the naive version fails, and that ours does not.

Products that cancel are in `test_ghost_norm`; records of several windows, sums in bf16, and what a loss of the batch's
mean or flattened activations would couple, in `test_matrix`, by the oracle; noise that a seed reproduces in
`test_noise`.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2LMHeadModel

from atdp_cli.training.clip import ghost, opacus
from atdp_cli.training.clip import ghost as hooks
from atdp_cli.training.clip import layer_rules as layers
from atdp_cli.training.clip.batches import PhysicalBatch, collate, loss_gradient
from atdp_cli.training.clip.engine import ClippedSum, clip_factors
from atdp_cli.training.clip.ghost import capture
from atdp_cli.training.clip.ghost_norm import LinearUse, Use, add_weighted, must_instantiate, squared_norms
from atdp_cli.training.clip.layer_rules import Call, UnknownLayerError, rule_for, trained_layers
from atdp_cli.training.examples import Example
from tests.training.clipping.models import Target, adapted, build, norm_error, oracle, record, relative
from tests.training.test_clipping import norm

TOLERANCE = 1e-5
CLIP = 0.05


def engine(
    model: Any, records: Sequence[Example], clip_norm: float = CLIP, *, tokens: int = 4096, positions: bool = False
) -> ClippedSum:
    return ghost.clipped_sum(model, records, clip_norm, tokens=tokens, positions=positions)


def same_as_loop(model: Any, records: Sequence[Example], **settings: Any) -> None:
    expected, actual = oracle(model, records, CLIP), engine(model, records, **settings)
    assert norm_error(actual, expected) <= TOLERANCE
    assert relative(actual.gradient, expected.gradient) <= TOLERANCE


def test_a_record_that_nearly_cancels_adds_no_more_than_the_clip_norm() -> None:
    """The norm is right, but the sum in fp32 is not that of which it is the norm."""
    draw = torch.Generator().manual_seed(0)
    left = 1000 * torch.randn(1, 1, 400, generator=draw) + 1e-3 * torch.randn(1, 24, 400, generator=draw)
    right = torch.randn(1, 24, 400, generator=draw)
    right[:, 12:] = 1e-6 * right[:, 12:] - right[:, :12].flip(1)
    use = LinearUse(left, right)
    assert not must_instantiate([use])
    naive = torch.zeros(400, 400)
    add_weighted([use], clip_factors(squared_norms([use]).sqrt(), CLIP), naive)
    assert norm([naive]) > 1.001 * CLIP
    parameter = nn.Parameter(torch.zeros(400, 400))
    total: dict[torch.Tensor, torch.Tensor] = {parameter: torch.zeros(400, 400)}
    uses: dict[torch.Tensor, list[Use]] = {parameter: [use]}
    ghost._clip(uses, collate([record(24)], [0]), CLIP, total, {})
    assert CLIP * (1 - 1e-4) <= norm([total[parameter]]) <= CLIP


class Doubled(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(2 * input)


def test_an_unknown_subclass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, records = build("Llama"), [record(7, seed=1)]
    model.model.layers[0].mlp.up_proj.__class__ = Doubled
    with pytest.raises(UnknownLayerError, match="Doubled"):
        engine(model, records)
    monkeypatch.setitem(layers._RULES, Doubled, layers._linear)
    assert norm_error(engine(model, records), oracle(model, records, CLIP)) > 1e-3


def test_a_layer_that_is_skipped_leaves_no_norm_behind() -> None:
    model, example = build("Llama"), record(9, seed=1)
    names = {parameter: name for name, parameter in model.named_parameters()}
    stale = squares_by_name(model, example, names)
    last = model.model.layers[1]
    last.forward = lambda hidden_states, **_: hidden_states
    stale |= squares_by_name(model, example, names)
    expected = float(oracle(model, [example], CLIP).norms[0])
    assert math.sqrt(sum(stale.values())) > 1.001 * expected
    same_as_loop(model, [example])


def squares_by_name(model: Any, example: Example, names: dict[torch.Tensor, str]) -> dict[str, float]:
    uses = capture(model, trained_layers(model), collate([example], [0]), positions=False)
    total = torch.ones(1, dtype=torch.float64)
    actual = {}
    for parameter, used in uses.items():
        gradient = torch.zeros_like(parameter)
        add_weighted(used, total, gradient)
        actual[names[parameter]] = float(gradient.double().square().sum())
    return actual


def test_positions_that_are_shared_by_a_batch_are_refused() -> None:
    """GPT-2 makes one row of position ids, so the gradient of a position is that of the whole batch."""
    model, records = build("GPT-2"), [record(9, seed=1), record(9, seed=2), record(9, seed=3)]
    with pytest.raises(UnknownLayerError, match="for 3 windows"):
        engine(model, records)
    same_as_loop(model, records, positions=True)
    model.requires_grad_(False)
    model.transformer.wpe.requires_grad_(True)
    alone = [float(engine(model, [example]).norms[0]) for example in records]
    naive = float(gradient_of_positions(model, collate(records, range(3))).norm())
    assert all(abs(naive - length) > 0.1 * length for length in alone)


def gradient_of_positions(model: GPT2LMHeadModel, batch: PhysicalBatch) -> torch.Tensor:
    log_p = F.log_softmax(model(input_ids=batch.input_ids).logits[:, :-1], dim=-1)
    picked = log_p.gather(2, batch.input_ids[:, 1:, None])[..., 0]
    [actual] = torch.autograd.grad(-(picked * batch.weights[:, 1:]).sum(), [model.transformer.wpe.weight])
    return actual


def test_positions_are_not_taken_for_as_many_windows() -> None:
    """T5's bias was 25 % wrong at as many windows as positions."""
    windows, width = 6, 6
    table = nn.Embedding(width, 4)
    ids, gradient = torch.arange(width), torch.randn(width, 4)
    naive = gradient.reshape(windows, -1, 4)
    assert naive.shape == (windows, 1, 4)
    with pytest.raises(UnknownLayerError, match="for 6 windows"):
        list(rule_for(table)(table, Call((ids,), {}, gradient, windows, width, windows)))


@pytest.mark.parametrize(("setting", "value"), [("scale_grad_by_freq", True), ("max_norm", 0.5), ("sparse", True)])
@pytest.mark.parametrize("target", ["full", "embedding"])
def test_embeddings_that_couple_records_are_refused(setting: str, value: Any, target: Target) -> None:
    model = build("Llama", tied=False)
    setattr(model.model.embed_tokens, setting, value)
    if target != "full":
        model = adapted(model, target)
    with pytest.raises(UnknownLayerError, match="scale_grad_by_freq"):
        engine(model, [record(7, seed=1)])


@pytest.mark.parametrize("module", [hooks, opacus], ids=["ghost", "opacus"])
def test_a_record_that_is_not_finite_spoils_no_other(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel that multiplies the padding of a batch by a neighbour's NaN."""

    def spoilt(logits: torch.Tensor, batch: PhysicalBatch) -> torch.Tensor:
        gradient = loss_gradient(logits, batch)
        return gradient if bool(gradient.isfinite().all()) else torch.full_like(gradient, math.nan)

    model = build("GPT-2")
    records = [record(8, seed=seed, scale=math.inf if seed == 1 else 1.0) for seed in range(4)]
    expected = oracle(model, records, CLIP)
    monkeypatch.setattr(module, "loss_gradient", spoilt)
    run = ghost.clipped_sum if module is hooks else opacus.clipped_sum
    actual = run(model, records, CLIP, tokens=4096, positions=True)
    assert torch.isfinite(actual.norms).tolist() == [True, False, True, True]
    assert relative(actual.gradient, expected.gradient) <= TOLERANCE


def test_some_parameters_may_be_frozen() -> None:
    """Biases alone, say: a layer's other parameter takes no part in the norm."""
    model, records = build("GPT-2"), [record(7, seed=1), record(5, 4, seed=2)]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    same_as_loop(model, records, positions=True)


def test_an_activation_that_others_made_a_leaf() -> None:
    """As peft does for gradient checkpointing, so that gradients reach its adapters."""
    model, records = build("Llama", target="attention"), [record(7, seed=1), record(5, 4, seed=2)]
    model.enable_input_require_grads()
    same_as_loop(model, records)
