"""What is silently wrong elsewhere: each test shows that the naive version fails, and that ours does not.

Products that cancel are in `test_uses`; noise that a seed reproduces in `test_noise`; adapters that change nothing
in `test_stage`.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from opacus.grad_sample import GradSampleHooks
from torch import nn
from torch.nn import functional as F
from transformers import GPT2LMHeadModel
from transformers.models.gemma3.modeling_gemma3 import Gemma3TextScaledWordEmbedding

from atdp_cli.privacy.rng import secure_stream
from atdp_cli.training.clip import ghost, opacus, per_record
from atdp_cli.training.clip import ghost as hooks
from atdp_cli.training.clip import layer_rules as layers
from atdp_cli.training.clip.batches import PhysicalBatch, collate, loss_gradient
from atdp_cli.training.clip.engine import ClippedSum, clip_factors, trainable
from atdp_cli.training.clip.ghost import capture
from atdp_cli.training.clip.ghost_norm import LinearUse, Use, add_weighted, must_instantiate, squared_norms
from atdp_cli.training.clip.layer_rules import Call, UnknownLayerError, rule_for, trained_layers
from atdp_cli.training.noise import add_noise
from atdp_cli.training.objective import Example
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


def flat(batch: PhysicalBatch) -> dict[str, torch.Tensor]:
    mask = torch.ones_like(batch.input_ids) if batch.attention_mask is None else batch.attention_mask
    return {"input_ids": batch.input_ids, "attention_mask": mask}


def test_the_mean_loss_of_transformers_couples_records() -> None:
    model = build("Llama")
    example, short, long = record(9, seed=1), record(3, seed=2), record(12, 12, seed=3)
    naive, ours = [], []
    for mates in ([], [short], [long]):
        batch = collate([example, *mates], range(1 + len(mates)))
        given = flat(batch)
        logits = model(**given).logits
        labels = given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)
        loss = model.loss_function(logits, labels, logits.shape[2])
        [gradient] = torch.autograd.grad(loss, logits, retain_graph=True)
        gradient[1:] = 0
        naive.append(batch.windows * norm(torch.autograd.grad(logits, trainable(model), gradient)))
        ours.append(float(engine(model, [example, *mates]).norms[0]))
    assert max(naive) > 1.2 * min(naive)
    assert max(ours) <= (1 + TOLERANCE) * min(ours)


def test_opt_flattens_its_activations() -> None:
    """At a physical batch of one record Opacus takes every position for a record and clips it as one."""
    model = build("OPT", target="mlp")
    example = record(12, seed=1)
    batch = collate([example], [0])
    actual: list[torch.Tensor] = []
    for layer in model.modules():
        layer.training = isinstance(layer, nn.Linear)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hooks = GradSampleHooks(model, loss_reduction="sum", strict=True)
        logits = model(input_ids=batch.input_ids).logits
        losses = F.cross_entropy(logits[0, :-1], batch.input_ids[0, 1:], reduction="none")
        (losses @ batch.weights[0, 1:]).backward()  # type: ignore[no-untyped-call]
        actual = [parameter.grad_sample for parameter in trainable(model)]  # type: ignore[attr-defined]
        hooks.cleanup()
    norms = torch.stack([part.flatten(1).norm(dim=1) for part in actual]).norm(dim=0)
    factors = clip_factors(norms, CLIP)
    naive = norm([torch.tensordot(factors, part, dims=1) for part in actual])
    model.eval()
    model.zero_grad()
    assert naive > 1.5 * CLIP
    assert norm(engine(model, [example]).gradient) <= CLIP
    same_as_loop(model, [example])


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


def test_a_subclass_may_compute_another_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, records = build("Gemma-3", tied=False), [record(7, seed=1), record(9, seed=2)]
    same_as_loop(model, records)
    monkeypatch.setitem(layers._RULES, Gemma3TextScaledWordEmbedding, layers._embedding)
    expected, naive = oracle(model, records, CLIP), engine(model, records)
    assert norm_error(naive, expected) > 0.01
    assert relative(naive.gradient, expected.gradient) > 0.01


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


def test_a_record_of_several_windows_is_clipped_as_one() -> None:
    model, example = build("Llama"), record(8, 8, 5, seed=1)
    windows = [Example((w,), (v,)) for w, v in zip(example.windows, example.weights, strict=True)]
    naive = engine(model, windows).gradient
    assert norm(naive) > 1.5 * CLIP
    assert norm(engine(model, [example]).gradient) <= CLIP


def test_a_sum_in_bf16_exceeds_the_clip_norm() -> None:
    model = build("Llama", dtype=torch.bfloat16)
    most = 0.0
    for seed in range(6):
        example = record(9, seed=seed)
        gradient = per_record.record_gradient(model, example, trainable(model))
        naive = [(part * (CLIP / norm(gradient))) for part in gradient]
        assert naive[0].dtype == torch.bfloat16
        most = max(most, norm(naive))
        for clipped in (per_record.clipped_sum(model, [example], CLIP), engine(model, [example])):
            assert norm(clipped.gradient) <= CLIP
    assert most > CLIP


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


def test_counts_of_a_batch_would_couple_records() -> None:
    """Why `scale_grad_by_freq` is refused: a row's gradient is divided by how often the batch has the token."""
    ids = torch.tensor([[3, 3, 4]])
    table = torch.randn(5, 2, requires_grad=True)
    [alone] = torch.autograd.grad(F.embedding(ids, table, scale_grad_by_freq=True).sum(), [table])
    both = F.embedding(torch.cat([ids, ids]), table, scale_grad_by_freq=True)
    [beside] = torch.autograd.grad(both[:1].sum(), [table])
    assert not torch.allclose(alone, beside)


def test_a_seed_reproduces_the_noise_of_torch_and_not_ours() -> None:
    naive, ours = [], []
    for _ in range(2):
        torch.manual_seed(0)
        naive.append(torch.normal(0.0, 1.0, (8,), generator=None))
        ours.append(torch.zeros(8))
        add_noise([ours[-1]], 1.0, secure_stream())
    assert torch.equal(*naive)
    assert not torch.equal(*ours)


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
