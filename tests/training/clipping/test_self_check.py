"""The check of an engine before training: no fault of 1e-3 passes, and no fine-tuned checkpoint is refused."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from atdp_cli.errors import InputError
from atdp_cli.events import ignore
from atdp_cli.training.clip import ghost, ghost_norm, opacus, per_record
from atdp_cli.training.clip import select as selection
from atdp_cli.training.clip.engine import ClippedSum, trainable
from atdp_cli.training.clip.ghost_norm import EmbeddingUse, LinearUse, Use
from atdp_cli.training.clip.layer_rules import Call, Rule, trained_layers
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.clip.self_check import computing_in_double, difference, random_records, same_gradients
from tests.training.clipping.models import ISSUE, SHAPES, VOCABULARY, Target, build, untouched

FAULT = 1e-3
COMMON = ("GPT-2", "Llama")
TARGETS: tuple[Target, ...] = ("full", "all")


def shortened(names: Sequence[str], rest: pytest.MarkDecorator = pytest.mark.ci) -> list[Any]:
    return [name if name in COMMON else pytest.param(name, marks=rest) for name in names]


def engine_for(architecture: str) -> Any:
    learned = architecture in ("GPT-2", "GPT-Neo")
    return partial(ghost.clipped_sum, tokens=selection.PROBE_TOKENS, positions=learned)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("architecture", shortened([name for name in SHAPES if name not in ("Mixtral", "Mamba")]))
def test_in_fp64_ghost_is_loop(architecture: str, target: Target) -> None:
    model = build(architecture, target=target)
    records = random_records(model)
    with untouched(model), computing_in_double(model):
        expected = per_record.clipped_sum(model, records, 0.05)
        assert {part.dtype for part in expected.gradient} == {torch.float64}
        assert difference(engine_for(architecture)(model, records, 0.05), expected) <= 1e-13


def test_in_fp64_casts_to_fewer_bits_are_none() -> None:
    """A Llama's norms and rotary angles are cast to fp32, so 1e-12 in its weights would not come through."""
    model = build("Llama")
    [first, *_] = random_records(model)
    with computing_in_double(model):
        before = float(per_record.clipped_sum(model, [first], 1.0).norms[0])
        weight = trainable(model)[0]
        weight.data += 1e-12
        after = float(per_record.clipped_sum(model, [first], 1.0).norms[0])
    assert 0 < abs(after - before) < 1e-9


@pytest.mark.ci
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("architecture", shortened(ISSUE, rest=pytest.mark.deep))
def test_a_fault_in_any_rule_for_any_parameter_is_refused(
    architecture: str, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, engine = build(architecture, target=target), engine_for(architecture)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert same_gradients(model, "ghost", engine, "float32")
    planted = 0
    for parameter in noticeable(model):
        monkeypatch.setattr(ghost, "trained_layers", partial(spoiled, parameter=parameter))
        assert not same_gradients(model, "ghost", engine, "float32"), names[id(parameter)]
        planted += 1
    assert planted >= len(trainable(model)) / 2


def noticeable(model: Any) -> Iterator[torch.nn.Parameter]:
    """Parameters with a gradient. The bias of an attention's keys has none, as softmax does not see it."""
    whole = per_record.clipped_sum(model, random_records(model), 1.0).gradient
    length = sum(float(part.square().sum()) for part in whole) ** 0.5
    for parameter, part in zip(trainable(model), whole, strict=True):
        if float(part.square().sum()) ** 0.5 > 1e-5 * length:
            yield parameter


def spoiled(model: Any, parameter: torch.nn.Parameter) -> list[tuple[Any, Rule]]:
    """The rules of the model's layers, wrong by `FAULT` for one parameter."""

    def wrong(rule: Rule, layer: Any, call: Call) -> Iterator[tuple[torch.Tensor, Use]]:
        for owned, use in rule(layer, call):
            yield owned, scaled(use) if owned is parameter else use

    return [(layer, partial(wrong, rule)) for layer, rule in trained_layers(model)]


def scaled(use: Use) -> Use:
    match use:
        case LinearUse(left, right):
            return LinearUse(left * (1 + FAULT), right)
        case EmbeddingUse(_, vectors, _):
            return replace(use, vectors=vectors * (1 + FAULT))
        case _:
            return replace(use, gradient=use.gradient * (1 + FAULT))


@pytest.mark.parametrize("architecture", ["Llama", "GPT-2", "Mamba"])
def test_in_fp64_opacus_is_nearly_loop_and_a_fault_is_refused(architecture: str) -> None:
    def wrong(*args: Any, **named: Any) -> ClippedSum:
        right = opacus.clipped_sum(*args, **named, tokens=selection.PROBE_TOKENS, positions=architecture == "GPT-2")
        return replace(right, norms=right.norms * (1 + fault))

    model = build(architecture)
    fault = 0.0
    assert same_gradients(model, "opacus", wrong, "float32")
    fault = 1e-5
    assert not same_gradients(model, "opacus", wrong, "float32")


@pytest.mark.parametrize("formed", ["_gram", "_tied", "_row_norms"])
def test_a_fault_in_norms_that_are_not_formed_is_refused(formed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Gram products are taken where records are short beside the matrix.
    model, original = build("Llama"), getattr(ghost_norm, formed)
    monkeypatch.setattr(ghost, "must_instantiate", lambda uses: ghost_norm._norm_form(uses) is None)
    assert same_gradients(model, "ghost", engine_for("Llama"), "float32")
    monkeypatch.setattr(ghost_norm, formed, lambda *args: original(*args) * (1 - FAULT))
    assert not same_gradients(model, "ghost", engine_for("Llama"), "float32")


def sharpened(architecture: str, seed: int) -> Any:
    """A tiny model, fine-tuned on eight random lines until it knows them: far from where weights start."""
    model = build(architecture)
    draw = torch.Generator().manual_seed(seed)
    lines = torch.randint(0, VOCABULARY, (8, 12), generator=draw)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    given = {"labels": lines} if model.config.is_encoder_decoder else {}
    for _ in range(60):
        logits = model(lines, **given).logits
        targets = lines if given else lines[:, 1:]
        loss = F.cross_entropy((logits if given else logits[:, :-1]).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert float(loss.detach()) < 1
    optimizer.zero_grad()
    return model.eval()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("architecture", shortened(ISSUE, rest=pytest.mark.deep))
def test_no_fine_tuned_model_is_refused(architecture: str) -> None:
    for seed in range(2):
        assert select_engine(sharpened(architecture, seed), "auto", ignore).name == "ghost"


def saturated(draw: int) -> Any:
    """A Llama whose attention takes all but one token, where small errors of a score decide which one."""
    model = build("Llama")
    generator = torch.Generator().manual_seed(draw)
    with torch.no_grad():
        for layer in model.model.layers:
            for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
                projection.weight.copy_(40 * torch.randn(projection.weight.shape, generator=generator))
    return model


def rounding(model: Any) -> float:
    """Of the sum that `per-record` computes in fp32, over that in fp64."""
    records = random_records(model)
    with computing_in_double(model):
        exact = per_record.clipped_sum(model, records, 1.0)
    return difference(per_record.clipped_sum(model, records, 1.0), exact)


@cache
def ill_conditioned_draw() -> int:
    """Which draw rounds badly depends on the processor."""
    return next(draw for draw in range(100) if rounding(saturated(draw)) > 1e-4)


def ill_conditioned() -> Any:
    """A model whose gradients of single records are wrong by more than 1e-4 in fp32."""
    return saturated(ill_conditioned_draw())


def test_a_model_whose_gradients_round_badly_is_no_fault_of_the_engine() -> None:
    model = ill_conditioned()
    assert rounding(model) > 1e-4
    with untouched(model):
        assert select_engine(model, "ghost", ignore).name == "ghost"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("make", [partial(build, "Llama"), ill_conditioned], ids=["plain", "rounds badly"])
@pytest.mark.parametrize(("share", "refused"), [(1e-4, True), (3e-5, True), (0.0, False)])
def test_a_norm_that_is_underestimated_where_it_runs_is_refused(
    make: Callable[[], Any], share: float, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fp32 alone, and by more than the margin between C and what records are clipped to."""

    def under(model: Any, records: Any, clip_norm: float, **_: Any) -> ClippedSum:
        right = per_record.clipped_sum(model, records, clip_norm)
        if trainable(model)[0].dtype == torch.float64:
            return right
        return replace(
            right, norms=right.norms * (1 - share), gradient=tuple(part / (1 - share) for part in right.gradient)
        )

    model = make()
    monkeypatch.setitem(selection._BATCHED, "ghost", under)
    if not refused:
        assert select_engine(model, "ghost", ignore).name == "ghost"
        return
    with pytest.raises(InputError, match="its gradients are not those of single records"):
        select_engine(model, "ghost", ignore)


def test_bits_come_back_whatever_happens() -> None:
    model = build("Gemma-3", target="all", dtype=torch.bfloat16)

    def fail() -> None:
        with computing_in_double(model):
            assert {tensor.dtype for tensor in model.parameters()} == {torch.float64}
            raise ZeroDivisionError

    with untouched(model), pytest.raises(ZeroDivisionError):
        fail()
    assert {tensor.dtype for tensor in model.parameters()} == {torch.bfloat16}


def test_large_models_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, together = build("Llama"), []

    def noting(model: Any, *args: Any, **named: Any) -> ClippedSum:
        together.append(sum(parameter.numel() for parameter in trainable(model)))
        return ghost.clipped_sum(model, *args, **named, tokens=selection.PROBE_TOKENS, positions=False)

    monkeypatch.setattr("atdp_cli.training.clip.self_check.CHECKED_AT_ONCE", 1000)
    whole = sum(parameter.numel() for parameter in trainable(model))
    with untouched(model):
        assert same_gradients(model, "ghost", noting, "float32")
    largest = max(parameter.numel() for parameter in trainable(model))
    assert max(together) <= max(1000, largest)
    per_part = 4  # one in fp64, one in fp32, two of single records
    assert sum(together) == per_part * whole
