"""A stage's loop: what it draws, what it writes before it steps, and what it refuses."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from atdp_cli.errors import InterruptedRunError, RunError
from atdp_cli.events import EpochDone, EpochRestored, Event, StepDone
from atdp_cli.model.perplexity import perplexity
from atdp_cli.privacy.journal import open_journal, read_journal
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.privacy.schedule import Constant, RiseReset, Schedule
from atdp_cli.training.clip.engine import ClippedSum, trainable
from atdp_cli.training.clip.per_record import clipped_sum
from atdp_cli.training.examples import Example
from atdp_cli.training.noise import BLOCK, normals, poisson_sample
from atdp_cli.training.objectives import NoLoss, Objective, Uniform
from atdp_cli.training.plan import CorpusFacts, Plan, StagePlan, make_plan
from atdp_cli.training.recipe import DECOYS, DPSGD, NO_DP, SGD, AdamW, Optimizer, Recipe, TextVariant, Train
from atdp_cli.training.state import StageResult, StageState, ignore_state
from atdp_cli.training.trainer import Randomness, run_noise, run_plain, run_private
from tests.training.stages import stage_run, trained
from tests.training.test_clipping import CLIP, VOCABULARY, distance, example, gpt2, norm


def private_recipe(
    *,
    sigma: float = 1.0,
    epochs: int = 2,
    optimizer: Optimizer | None = None,
    objective: Objective | None = None,
    schedule: Schedule | None = None,
) -> Recipe:
    schedule = schedule or Constant(noise_multiplier=sigma)
    mechanism = DPSGD(clip_norm=CLIP, expected_batch=4, schedule=schedule)
    stage = Train(
        name="dp-sgd",
        text=TextVariant.RAW,
        objective=objective or Uniform(),
        mechanism=mechanism,
        epochs=epochs,
        optimizer=optimizer or AdamW(),
    )
    return (stage,)


def plan_for(recipe: Recipe, records: int) -> Plan:
    return make_plan(
        recipe,
        CorpusFacts(records=records, relation=hypothetical("line", "high-contextual")),
        delta=1e-6,
        checkpoint_history="public",
    )


def streams(seed: int = 0) -> Randomness:
    return Randomness(sample=insecure_stream(seed, "sample"), noise=insecure_stream(seed, "noise"))


def run(
    model: Any, examples: list[Example], recipe: Recipe, path: Path, *, seed: int = 0, engine: Any = clipped_sum
) -> StageResult:
    with open_journal(path) as journal:
        return run_private(
            stage_run(model, plan_for(recipe, len(examples)).training[0], examples=examples),
            engine=engine,
            randomness=streams(seed),
            journal=journal,
        )


def whole_noise(stream: KeyStream, count: int) -> torch.Tensor:
    return torch.cat([normals(stream, min(BLOCK, count - start)) for start in range(0, count, BLOCK)])


def test_the_journal_says_what_the_plan_said(tmp_path: Path) -> None:
    examples = [example(5, seed=seed) for seed in range(10)]
    path = tmp_path / "journal"
    run(gpt2(), examples, private_recipe(), path)
    assert read_journal(path) == plan_for(private_recipe(), 10).ledger.events


def test_the_journal_line_is_on_disk_before_the_step(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    model = gpt2()
    seen: list[tuple[int, float]] = []

    def engine(current: Any, records: Any, clip_norm: float) -> ClippedSum:
        seen.append((len(path.read_text().splitlines()), float(next(current.parameters()).detach().sum())))
        return clipped_sum(current, records, clip_norm)

    run(model, [example(5, seed=seed) for seed in range(10)], private_recipe(), path, engine=engine)
    assert [lines for lines, _ in seen] == list(range(1, 7))
    assert len({weight for _, weight in seen}) == 6


def test_one_sgd_step_is_the_clipped_sum_plus_noise_over_the_expected_batch(tmp_path: Path) -> None:
    examples = [example(5, seed=seed) for seed in range(8)]
    recipe = private_recipe(sigma=2.0, epochs=1, optimizer=SGD(learning_rate=0.5))
    model, twin = gpt2(), gpt2()
    run(model, examples, recipe, tmp_path / "journal", seed=9)
    randomness = streams(9)
    for _ in range(2):
        rows = poisson_sample(8, 0.5, randomness.sample)
        total = clipped_sum(twin, [examples[row] for row in rows], CLIP).gradient
        for parameter, part in zip(trainable(twin), total, strict=True):
            noise = whole_noise(randomness.noise, part.numel()).view(part.shape)
            with torch.no_grad():
                parameter.sub_((0.5 * (part + 2.0 * CLIP * noise) / 4).float())
    assert distance(trainable(model), trainable(twin)) < 1e-6 * norm(trainable(twin))


def test_an_empty_sample_steps_on_noise_alone_and_is_counted(tmp_path: Path) -> None:
    model = gpt2()
    examples = [Example((), ()) for _ in range(10)]
    before = [parameter.detach().clone() for parameter in trainable(model)]
    result = run(model, examples, private_recipe(epochs=1), tmp_path / "journal")
    assert distance(before, trainable(model)) > 0
    assert read_journal(tmp_path / "journal") == plan_for(private_recipe(epochs=1), 10).ledger.events
    assert result.not_finite == 0


def test_records_that_are_not_finite_are_counted_and_do_no_harm(tmp_path: Path) -> None:
    examples = [example(5, seed=1, scale=float("inf")) for _ in range(10)]
    model = gpt2()
    result = run(model, examples, private_recipe(epochs=1), tmp_path / "journal")
    assert result.not_finite > 0
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_parameters_that_are_not_finite_end_the_run(tmp_path: Path) -> None:
    recipe = private_recipe(sigma=1e4, optimizer=SGD(learning_rate=1e38))
    with pytest.raises(RunError, match="finite"):
        run(gpt2(), [example(5, seed=seed) for seed in range(10)], recipe, tmp_path / "journal")


def test_a_first_step_that_changes_nothing_is_an_error(tmp_path: Path) -> None:
    model = gpt2()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model.transformer.ln_f.bias.requires_grad_(True)
    recipe = private_recipe(optimizer=SGD(learning_rate=1e-45))
    with pytest.raises(RunError, match="changed no parameter"):
        run(model, [Example((), ())] * 10, recipe, tmp_path / "journal")


def test_dropout_is_off_while_records_are_clipped(tmp_path: Path) -> None:
    model = gpt2().train()
    modes: list[bool] = []

    def engine(current: Any, records: Any, clip_norm: float) -> ClippedSum:
        modes.append(current.training)
        return clipped_sum(current, records, clip_norm)

    run(model, [example(5)] * 10, private_recipe(), tmp_path / "journal", engine=engine)
    assert modes
    assert not any(modes)


def test_poisson_samples_are_independent_coins() -> None:
    stream = insecure_stream(1, "sample")
    counts = np.zeros(50, dtype=int)
    sizes = []
    for _ in range(4000):
        chosen = poisson_sample(50, 0.1, stream)
        counts[chosen] += 1
        sizes.append(len(chosen))
    spread = math.sqrt(4000 * 0.1 * 0.9)
    assert np.abs(counts - 400).max() < 5 * spread
    assert np.var(sizes) == pytest.approx(50 * 0.1 * 0.9, rel=0.1)
    observed = [sum(size == k for size in sizes) for k in range(4)]
    expected = [4000 * float(stats.binom.pmf(k, 50, 0.1)) for k in range(4)]
    assert all(abs(o - e) < 5 * math.sqrt(e) for o, e in zip(observed, expected, strict=True))


def test_plain_training_learns_and_reports(tmp_path: Path) -> None:
    model = gpt2()
    examples = [example(8, seed=seed % 3) for seed in range(30)]
    stage = plan_for(NO_DP, 30).training[0]
    heard: list[Event] = []
    windows = [window for record in examples for window in record.windows]
    measured = partial(perplexity, model, windows)
    watched = stage_run(model, stage, examples=examples, held_out=measured, notify=heard.append)
    result = run_plain(watched, seed=1)
    actual = [epoch_perplexity.all for epoch_perplexity in result.perplexities]
    assert actual == [event.all_tokens for event in heard if isinstance(event, EpochDone)]
    assert len(actual) == 3
    assert (actual[2] or 0) < (actual[0] or 0) < VOCABULARY
    assert sum(isinstance(event, StepDone) for event in heard) == stage.steps
    assert not model.training


@pytest.mark.ci
@settings(max_examples=25)
@given(st.lists(st.sampled_from([1.0, 2.0, math.inf]), min_size=3, max_size=3), st.integers(0, 9))
def test_a_stage_that_restores_the_best_epoch_has_its_weights(losses: list[float], stop: int) -> None:
    """Whatever the losses are, and wherever it is interrupted: those of the first of the lowest."""
    model, plan = gpt2(), plan_for((replace(trained(DECOYS)[0], restore_best=True, epochs=3),), 30).training[0]
    examples, heard = [example(5, seed=seed) for seed in range(30)], list[Event]()
    after_epochs: list[list[torch.Tensor]] = []
    saved: list[StageState] = []

    def loss() -> float:
        after_epochs.append([parameter.detach().clone() for parameter in model.parameters()])
        return losses[len(after_epochs) - 1]

    def save(state: Callable[[], StageState]) -> None:
        if state().step == stop:
            saved.append(copy.deepcopy(state()))
            raise InterruptedRunError("stopped", "")

    stage = stage_run(model, plan, examples=examples, decoyed_loss=loss, after_step=save, notify=heard.append)
    try:
        result = run_plain(stage, seed=1)
    except InterruptedRunError:
        result = run_plain(replace(stage, resume_from=saved[0], after_step=ignore_state), seed=1)
    best = losses.index(min(losses))
    assert result.restored_epoch == best + 1
    assert all(map(torch.equal, model.parameters(), after_epochs[best]))
    assert [event.epoch for event in heard if isinstance(event, EpochRestored)] == ([] if best == 2 else [best + 1])


STEEP = RiseReset(noise_multiplier=0.5, sigma_growth=1.5, jitter=(0.9, 1.1))


def noise_plan(*, optimizer: AdamW | SGD, epochs: int = 3) -> StagePlan:
    """Its steps are three an epoch."""
    return plan_for(
        private_recipe(epochs=epochs, optimizer=optimizer, objective=NoLoss(), schedule=STEEP), 10
    ).training[0]


def shaken(model: Any, plan: StagePlan, heard: list[Event], *, seed: int = 0) -> StageResult:
    return run_noise(stage_run(model, plan, notify=heard.append), noise=streams(seed).noise)


def test_noise_alone_is_a_walk_of_scaled_normals() -> None:
    plan = noise_plan(optimizer=SGD(learning_rate=0.5))
    model, twin = gpt2(), gpt2()
    heard: list[Event] = []
    result = shaken(model, plan, heard, seed=4)
    noise = streams(4).noise
    for sigma in plan.noise_multipliers:
        for _ in range(3):
            for parameter in trainable(twin):
                step = sigma * CLIP * whole_noise(noise, parameter.numel()).view(parameter.shape) / 4
                with torch.no_grad():
                    parameter.sub_((0.5 * step).float())
    assert distance(trainable(model), trainable(twin)) < 1e-6 * norm(trainable(twin))
    assert distance(trainable(model), trainable(gpt2())) > 0.01 * norm(trainable(twin))
    steps = [event for event in heard if isinstance(event, StepDone)]
    assert len(steps) == plan.steps == 9
    assert [event.noise_multiplier for event in steps] == [sigma for sigma in plan.noise_multipliers for _ in range(3)]
    assert {event.tokens for event in steps} == {0}
    assert len(result.perplexities) == 3


def test_noise_alone_is_training_on_empty_records(tmp_path: Path) -> None:
    """The control and the stage that it controls for differ in the records, and in 1 + β."""
    optimizer = AdamW(learning_rate=1e-2)
    model, twin = gpt2(), gpt2()
    shaken(model, noise_plan(optimizer=optimizer), [], seed=6)
    recipe = private_recipe(epochs=3, optimizer=optimizer, schedule=STEEP)
    run(twin, [Example((), ())] * 10, recipe, tmp_path / "journal", seed=6)
    assert distance(trainable(model), trainable(twin)) <= 1e-6 * distance(trainable(model), trainable(gpt2()))
    other = gpt2()
    shaken(other, noise_plan(optimizer=optimizer), [], seed=7)
    assert not torch.equal(next(model.parameters()), next(other.parameters()))


def test_noise_alone_needs_noise_and_ends_like_any_stage() -> None:
    with pytest.raises(ValueError, match="has no noise"):
        run_noise(stage_run(gpt2(), plan_for(NO_DP, 10).training[0]), noise=streams().noise)
    with pytest.raises(RunError, match="finite"):
        shaken(gpt2(), replace(noise_plan(optimizer=SGD(learning_rate=1e38)), noise_multipliers=(1e4,)), [])
