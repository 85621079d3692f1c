"""Optimizers: the second moment without its noise, and weight decay towards where a stage began."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.per_record import clipped_sum
from atdp_cli.training.dp_adambc import BETAS, DPAdamBC
from atdp_cli.training.mechanism import poisson_sample
from atdp_cli.training.objectives.kinds import Uniform
from atdp_cli.training.objectives.noise import NoLoss
from atdp_cli.training.optimizers import make_optimizer
from atdp_cli.training.recipe import DPSGD, NO_DP, SGD, AdamW, NonPrivate, Optimizer, TextVariant, Towards, Train
from atdp_cli.training.recipe import AdamBC as Corrected
from atdp_cli.training.trainer import run_noise, run_plain
from tests.training.stages import stage_run
from tests.training.test_clipping import CLIP, distance, example, gpt2, norm
from tests.training.test_trainer import STEEP, plan_for, private_recipe, run, streams, whole_noise

Numbers = npt.NDArray[np.float64]


def walk(
    start: Numbers,
    gradients: Sequence[Numbers],
    variances: Sequence[float],
    *,
    rate: float,
    decay: float,
    floor: float,
) -> Numbers:
    """Where DP-AdamBC goes, every moment written out as the sum that it is."""
    first, second = BETAS
    place = start.copy()
    for t in range(1, len(gradients) + 1):
        ages = np.arange(t - 1, -1, -1)
        of_mean, of_squares = (beta**ages * (1 - beta) / (1 - beta**t) for beta in (first, second))
        mean = sum(w * g for w, g in zip(of_mean, gradients[:t], strict=True))
        squares = sum(w * g**2 for w, g in zip(of_squares, gradients[:t], strict=True))
        noise = float(sum(w * v for w, v in zip(of_squares, variances[:t], strict=True)))
        place = (
            place - rate * decay * place - rate * mean / (np.sqrt(np.maximum(squares - noise, floor * noise)) + 1e-8)
        )
    return place


def stepped(optimizer: Any, parameter: nn.Parameter, gradient: torch.Tensor, variance: float | None = None) -> None:
    parameter.grad = gradient.clone()
    if variance is not None:
        optimizer.set_noise_variance(variance)
    optimizer.step()


def draws(seed: int, steps: int, size: int = 40) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=generator, dtype=torch.float64) for _ in range(steps)]


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6),
    st.lists(st.floats(1e-6, 4.0), min_size=1, max_size=12),
    st.floats(1e-4, 0.1),
    st.floats(0, 1),
    st.floats(1e-3, 2),
)
def test_it_goes_where_the_sums_say_while_the_noise_changes(
    seed: int, variances: list[float], rate: float, decay: float, floor: float
) -> None:
    start, *gradients = draws(seed, len(variances) + 1)
    parameter = nn.Parameter(start.clone())
    optimizer = DPAdamBC([parameter], learning_rate=rate, weight_decay=decay, floor=floor)
    for gradient, variance in zip(gradients, variances, strict=True):
        stepped(optimizer, parameter, gradient, variance)
    expected = walk(
        start.numpy(),
        [step_gradient.numpy() for step_gradient in gradients],
        variances,
        rate=rate,
        decay=decay,
        floor=floor,
    )
    assert np.abs(parameter.detach().numpy() - expected).max() <= 1e-9


def test_without_noise_it_is_adamw() -> None:
    start, *gradients = draws(1, 30)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimizer = DPAdamBC([ours], learning_rate=0.03, weight_decay=0.2, floor=0.1)
    usual = torch.optim.AdamW([theirs], lr=0.03, weight_decay=0.2)
    for scale, gradient in enumerate(gradients):
        gradient[::5] = 0
        stepped(optimizer, ours, gradient * 10.0 ** (scale % 3 - 4), 0.0)
        stepped(usual, theirs, gradient * 10.0 ** (scale % 3 - 4))
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_what_is_left_of_pure_noise_is_nothing() -> None:
    """Through a rise and a reset of σ, within five standard errors at every step."""
    size, generator = 200_000, torch.Generator().manual_seed(0)
    parameter = nn.Parameter(torch.zeros(size, dtype=torch.float64))
    optimizer = DPAdamBC([parameter], learning_rate=1e-3, weight_decay=0.0, floor=0.1)
    for sigma in (1.0, 1.0, 1.5, 1.5, 3.0, 3.0, 0.5, 0.5):
        noise = sigma * torch.randn(size, generator=generator, dtype=torch.float64)
        stepped(optimizer, parameter, noise, sigma**2)
        left = optimizer.signal(parameter)
        assert abs(float(left.mean())) < 5 * float(left.std()) / math.sqrt(size)
        assert float(left.std()) < 2 * optimizer.noise


def test_what_is_left_of_a_signal_in_noise_is_the_signal() -> None:
    size, generator = 200_000, torch.Generator().manual_seed(1)
    parameter = nn.Parameter(torch.zeros(size, dtype=torch.float64))
    optimizer = DPAdamBC([parameter], learning_rate=1e-3, weight_decay=0.0, floor=0.1)
    for sigma in (0.5, 1.0, 2.0):
        stepped(optimizer, parameter, 3 + sigma * torch.randn(size, generator=generator, dtype=torch.float64), sigma**2)
    left = optimizer.signal(parameter)
    assert abs(float(left.mean()) - 9) < 5 * float(left.std()) / math.sqrt(size)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(1e-2, 10), st.floats(1e-2, 1e6))
def test_no_step_is_longer_than_the_floor_allows_and_none_depends_on_the_scale(
    seed: int, floor: float, scale: float
) -> None:
    """√(1 + 1/floor) times Adam's; and gradients, noise and all, may be measured in any unit."""
    variances = (1.0, 4.0, 0.25)
    gradients = draws(seed, 3)
    steps = []
    for factor in (1.0, scale):
        parameter, usual = (nn.Parameter(torch.zeros(40, dtype=torch.float64)) for _ in range(2))
        optimizer = DPAdamBC([parameter], learning_rate=1.0, weight_decay=0.0, floor=floor)
        adam = torch.optim.AdamW([usual], lr=1.0, weight_decay=0.0)
        for gradient, variance in zip(gradients, variances, strict=True):
            before = [weights.detach().clone() for weights in (parameter, usual)]
            stepped(optimizer, parameter, factor * gradient, factor**2 * variance)
            stepped(adam, usual, factor * gradient)
            ours, theirs = ((weights - old).abs() for weights, old in zip((parameter, usual), before, strict=True))
            assert (ours <= theirs * math.sqrt(1 + 1 / floor) * 1.001 + 1e-12).all()
        steps.append(parameter.detach())
    torch.testing.assert_close(steps[0], steps[1], rtol=1e-3, atol=5e-3)


def test_it_must_know_the_noise_of_every_step() -> None:
    parameter = nn.Parameter(torch.zeros(3))
    optimizer = DPAdamBC([parameter], learning_rate=1.0, weight_decay=0.0, floor=0.1)
    with pytest.raises(ValueError, match="set_noise_variance"):
        stepped(optimizer, parameter, torch.ones(3))
    stepped(optimizer, parameter, torch.ones(3), 1.0)
    with pytest.raises(ValueError, match="set_noise_variance"):
        stepped(optimizer, parameter, torch.ones(3))


def test_a_stage_sets_the_noise_of_each_step(tmp_path: Path) -> None:
    """A private stage whose σ rises, beside the sums in fp64 over the same samples and noise."""
    settings = Corrected(learning_rate=1e-3, weight_decay=0.1, floor=0.3)
    recipe = private_recipe(epochs=3, optimizer=settings, schedule=STEEP)
    examples = [example(5, seed=seed) for seed in range(8)]
    plan = plan_for(recipe, 8).training[0]
    assert len(set(plan.noise_multipliers)) == 3
    model, twin = gpt2(), gpt2()
    gradients: list[Numbers] = []

    def engine(current: Any, records: Any, clip_norm: float) -> Any:
        actual = clipped_sum(current, records, clip_norm)
        gradients.append(flat(actual.gradient))
        return actual

    run(model, examples, recipe, tmp_path / "journal", seed=5, engine=engine)
    randomness, variances = streams(5), []
    for step, total in enumerate(gradients):
        sigma = plan.noise_multipliers[step // plan.steps_per_epoch]
        poisson_sample(8, 0.5, randomness.sample)
        noise = [whole_noise(randomness.noise, parameter.numel()) for parameter in trainable(twin)]
        gradients[step] = (total + sigma * CLIP * torch.cat(noise).numpy()) / 4
        variances.append((sigma * CLIP / 4) ** 2)
    expected = walk(flat(trainable(twin)), gradients, variances, rate=1e-3, decay=0.1, floor=0.3)
    moved = np.abs(expected - flat(trainable(twin))).max()
    assert moved > 1e-3
    assert np.abs(flat(trainable(model)) - expected).max() <= 1e-3 * moved


def test_noise_alone_sets_it_too() -> None:
    recipe = private_recipe(epochs=2, optimizer=Corrected(learning_rate=1e-3), objective=NoLoss(), schedule=STEEP)
    plan, model = plan_for(recipe, 10).training[0], gpt2()
    run_noise(stage_run(model, plan), noise=streams(1).noise)
    twin, noise = gpt2(), streams(1).noise
    gradients, variances = [], []
    for sigma in plan.noise_multipliers:
        for _ in range(plan.steps_per_epoch):
            drawn = [whole_noise(noise, parameter.numel()) for parameter in trainable(twin)]
            gradients.append(sigma * CLIP * torch.cat(drawn).numpy() / 4)
            variances.append((sigma * CLIP / 4) ** 2)
    expected = walk(flat(trainable(twin)), gradients, variances, rate=1e-3, decay=0.01, floor=0.1)
    assert np.abs(flat(trainable(model)) - expected).max() <= 1e-5


def flat(parts: Sequence[torch.Tensor]) -> Numbers:
    actual: Numbers = torch.cat([part.detach().double().flatten() for part in parts]).numpy()
    return actual


def stage_with(optimizer: Optimizer) -> Train:
    mechanism = DPSGD(schedule=STEEP) if isinstance(optimizer, Corrected) else NonPrivate()
    return Train(name="a", text=TextVariant.RAW, objective=Uniform(), mechanism=mechanism, optimizer=optimizer)


class Vector(nn.Module):
    """A model of one parameter."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values.clone())


KINDS = (AdamW, Corrected, SGD)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_gradient_the_distance_to_the_start_shrinks_by_the_decay(kind: type[Optimizer]) -> None:
    start, aside = draws(3, 2)
    model: Any = Vector(start)
    optimizer = make_optimizer(model, stage_with(kind(learning_rate=0.1, weight_decay=0.5, towards="start")))
    with torch.no_grad():
        model.values.add_(aside)
    for step in range(1, 6):
        stepped(optimizer, model.values, torch.zeros_like(start), 0.0 if kind is Corrected else None)
        torch.testing.assert_close(model.values.detach() - start, (1 - 0.1 * 0.5) ** step * aside)


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_at_zero_is_the_usual_decay(kind: type[Optimizer]) -> None:
    def ends(towards: Towards) -> torch.Tensor:
        model: Any = Vector(torch.zeros(40, dtype=torch.float64))
        optimizer = make_optimizer(model, stage_with(kind(learning_rate=0.1, weight_decay=0.7, towards=towards)))
        for gradient in draws(4, 10):
            stepped(optimizer, model.values, gradient, 0.3 if kind is Corrected else None)
        actual: torch.Tensor = model.values.detach()
        return actual

    torch.testing.assert_close(ends("start"), ends("zero"), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_start_lies_does_not_matter_to_the_way_from_it(kind: type[Optimizer]) -> None:
    def way(start: torch.Tensor) -> torch.Tensor:
        model: Any = Vector(start)
        optimizer = make_optimizer(model, stage_with(kind(learning_rate=0.1, weight_decay=0.7, towards="start")))
        for gradient in draws(4, 10):
            stepped(optimizer, model.values, gradient, 0.3 if kind is Corrected else None)
        actual: torch.Tensor = model.values.detach() - start
        return actual

    torch.testing.assert_close(way(draws(5, 1)[0]), way(torch.zeros(40, dtype=torch.float64)))


def test_a_plain_stage_with_much_of_it_stays_near_its_start() -> None:
    examples = [example(8, seed=seed % 3) for seed in range(30)]
    went = []
    for decay in (0.0, 10.0, 100.0):
        model = gpt2()
        optimizer = AdamW(learning_rate=5e-3, weight_decay=decay, towards="start")
        plan = plan_for(tuple(changed_optimizer(optimizer)), 30).training[0]
        run_plain(stage_run(model, plan, examples=examples), seed=1)
        went.append(distance(trainable(model), trainable(gpt2())))
    assert went[2] < 0.5 * went[0]
    assert went[2] < went[1] < went[0] < norm(trainable(gpt2()))


def changed_optimizer(optimizer: Optimizer) -> list[Train]:
    [stage] = NO_DP
    assert isinstance(stage, Train)
    return [Train(name="a", text=stage.text, objective=Uniform(), mechanism=NonPrivate(), optimizer=optimizer)]
