"""A stage's loop: what it draws, what it writes before it steps, and what it refuses."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from atdp_cli.errors import RunError
from atdp_cli.events import EpochDone, Event, StepDone, ignore
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.csprng import KeyStream, insecure_stream
from atdp_cli.privacy.journal import open_journal, read_journal
from atdp_cli.privacy.schedule import Constant
from atdp_cli.training.clipping.engine import ClippedSum, trainable
from atdp_cli.training.clipping.loop import clipped_sum
from atdp_cli.training.noise import BLOCK, add_noise, normals
from atdp_cli.training.objective import Example
from atdp_cli.training.plan import Corpus, Plan, make_plan
from atdp_cli.training.recipe import ATDP, DPSGD, NO_DP, SGD, AdamW, Recipe, Text, Train, Uniform
from atdp_cli.training.sampling import poisson_sample
from atdp_cli.training.stage import Randomness, StageResult, make_optimizer, run_plain, run_private
from tests.training.test_clipping import CLIP, VOCABULARY, distance, example, gpt2, norm

NOTHING = Perplexity(all=None, sensitive=None, other=None)


def private_recipe(*, sigma: float = 1.0, epochs: int = 2, optimizer: AdamW | SGD | None = None) -> Recipe:
    mechanism = DPSGD(clip_norm=CLIP, expected_batch=4, schedule=Constant(noise_multiplier=sigma))
    stage = Train(
        name="dp-sgd",
        text=Text.RAW,
        objective=Uniform(),
        mechanism=mechanism,
        epochs=epochs,
        optimizer=optimizer or AdamW(),
    )
    return (stage,)


def plan_for(recipe: Recipe, records: int) -> Plan:
    return make_plan(recipe, Corpus(records=records, unit="line", masks="movable"), delta=1e-6, prior="public")


def streams(seed: int = 0) -> Randomness:
    return Randomness(sample=insecure_stream(seed, "sample"), noise=insecure_stream(seed, "noise"))


def run(
    model: Any, examples: list[Example], recipe: Recipe, path: Path, *, seed: int = 0, engine: Any = clipped_sum
) -> StageResult:
    with open_journal(path) as journal:
        return run_private(
            model,
            examples,
            plan_for(recipe, len(examples)).stages[0],
            engine=engine,
            randomness=streams(seed),
            journal=journal,
            held_out=lambda: NOTHING,
            notify=ignore,
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


def test_noise_has_the_standard_deviation_asked_for() -> None:
    parts = [torch.full((200, 300), 3.0), torch.zeros(40_000)]
    add_noise(parts, 0.25, insecure_stream(2, "noise"))
    for part, mean in zip(parts, (3.0, 0.0), strict=True):
        assert stats.kstest((part.double().flatten().numpy() - mean) / 0.25, "norm").pvalue > 1e-3


def test_plain_training_learns_and_reports(tmp_path: Path) -> None:
    model = gpt2()
    examples = [example(8, seed=seed % 3) for seed in range(30)]
    stage = plan_for(NO_DP, 30).stages[0]
    heard: list[Event] = []
    windows = [window for one in examples for window in one.windows]
    result = run_plain(model, examples, stage, held_out=lambda: perplexity(model, windows), notify=heard.append, seed=1)
    found = [one.all for one in result.perplexities]
    assert found == [event.all_tokens for event in heard if isinstance(event, EpochDone)]
    assert len(found) == 3
    assert (found[2] or 0) < (found[0] or 0) < VOCABULARY
    assert sum(isinstance(event, StepDone) for event in heard) == stage.steps
    assert not model.training


def test_every_stage_starts_with_a_fresh_optimizer() -> None:
    model = gpt2()
    assert make_optimizer(model, ATDP[0]).state == {}
    assert make_optimizer(model, ATDP[0]) is not make_optimizer(model, ATDP[0])
