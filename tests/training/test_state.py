"""A stage that is broken off after any of its steps and goes on elsewhere is the stage that never was."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.journal import open_journal, read_journal
from atdp_cli.privacy.ledger import SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.clip.per_record import clipped_sum
from atdp_cli.training.examples import Example
from atdp_cli.training.objectives import NoLoss, Uniform
from atdp_cli.training.plan import CorpusFacts, StagePlan, make_plan
from atdp_cli.training.recipe import DPSGD, NO_DP, SGD, AdamW, NonPrivate, Optimizer, TextVariant, Train
from atdp_cli.training.state import StageResult, StageState
from atdp_cli.training.step import make_optimizer, optimizer_tensors, restore_optimizer
from atdp_cli.training.trainer import Randomness, run_noise, run_plain, run_private
from tests.training.stages import stage_run, trained
from tests.training.test_clipping import CLIP, example, gpt2

RECORDS, EPOCHS, STEPS = 10, 3, 9
EXAMPLES = [example(5, seed=seed) for seed in range(RECORDS)]
OPTIMIZERS: dict[str, Optimizer] = {"adamw": AdamW(learning_rate=1e-2), "sgd": SGD(learning_rate=0.5, weight_decay=0.1)}


class BrokenOffError(Exception):
    """The machine is gone."""


def stage_plan(optimizer: Optimizer, *, nothing: bool = False) -> StagePlan:
    """Three epochs of three steps with rising noise, η falling."""
    schedule = RiseReset(noise_multiplier=0.5, sigma_growth=1.5, jitter=(0.9, 1.1))
    stage = Train(
        name="dp-sgd",
        text=TextVariant.RAW,
        objective=NoLoss() if nothing else Uniform(),
        mechanism=DPSGD(clip_norm=CLIP, expected_batch=4, schedule=schedule),
        epochs=EPOCHS,
        optimizer=optimizer,
        annealing="linear",
    )
    corpus = CorpusFacts(records=RECORDS, relation=hypothetical("line", "high-contextual"))
    return make_plan((stage,), corpus, delta=1e-6, checkpoint_history="public").training[0]


def plain_plan() -> StagePlan:
    [stage] = trained(NO_DP)
    optimizer = AdamW(learning_rate=1e-2, weight_decay=0.5)
    recipe = (replace(stage, epochs=EPOCHS, optimizer=optimizer, mechanism=NonPrivate(batch_size=4)),)
    return make_plan(
        recipe,
        CorpusFacts(records=RECORDS, relation=hypothetical("line", "high-contextual")),
        delta=1e-6,
        checkpoint_history="public",
    ).training[0]


def kept(actual: StageState) -> StageState:
    """What a disk would hold: nothing that lives on."""
    return copy.deepcopy(actual)


Stage = Callable[..., StageResult]


def interrupted(stage: Stage, step: int) -> tuple[StageResult, Any]:
    """The stage broken off after a step, and resumed by another model that was given what was kept."""
    held: list[StageState] = []
    model, left = gpt2(), None

    def after_step(underway: Callable[[], StageState]) -> None:
        nonlocal left
        if (actual := underway()).step == step:
            held.append(kept(actual))
            left = copy.deepcopy(model.state_dict())
            raise BrokenOffError

    with pytest.raises(BrokenOffError):
        stage(model, after_step=after_step)
    assert left is not None
    other = gpt2()
    other.load_state_dict(left)
    torch.manual_seed(12345)  # another process
    return stage(other, resume_from=held[0]), other


def same(result: StageResult, other: StageResult, model: Any, twin: Any) -> None:
    assert result == other
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def held_out(model: Any) -> Callable[[], Perplexity]:
    """Some figure that tells models apart."""
    return lambda: Perplexity(all=float(next(model.parameters()).detach().sum()), sensitive=None, other=None)


def private(optimizer: Optimizer, folder: Path) -> Stage:
    """A private stage whose streams go on where they are, as no real run's do: then nothing in it is random."""
    sample, noise = insecure_stream(0, "sample"), insecure_stream(0, "noise")

    def run(model: Any, max_steps: int | None = None, **resuming: Any) -> StageResult:
        with open_journal(folder / "journal") as journal:
            return run_private(
                stage_run(model, stage_plan(optimizer), examples=EXAMPLES, held_out=held_out(model), **resuming),
                engine=clipped_sum,
                randomness=Randomness(sample=sample, noise=noise),
                journal=journal,
                max_steps=max_steps,
            )

    return run


@pytest.mark.one_in(10)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("step", [1, 3, 5, 8, 9])
def test_a_private_stage_goes_on_where_it_was(tmp_path: Path, name: str, step: int) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    twin = gpt2()
    whole = private(OPTIMIZERS[name], tmp_path / "whole")(twin)
    result, model = interrupted(private(OPTIMIZERS[name], tmp_path / "parts"), step)
    same(result, whole, model, twin)
    assert (tmp_path / "parts" / "journal").read_text() == (tmp_path / "whole" / "journal").read_text()


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_plain_stage_goes_on_where_it_was_with_its_order_and_its_dropout(step: int) -> None:
    """gpt2() drops out a tenth of everything, so a generator that is not where it was shows at once."""

    def stage(model: Any, **resuming: Any) -> StageResult:
        run = stage_run(model, plain_plan(), examples=EXAMPLES, held_out=held_out(model), **resuming)
        return run_plain(run, seed=7)

    twin = gpt2()
    whole = stage(twin)
    result, model = interrupted(stage, step)
    same(result, whole, model, twin)


def test_a_plain_stage_goes_on_in_the_order_that_was_drawn_for_it() -> None:
    """Without a seed of the user's."""
    seen: list[list[int]] = [[], []]
    session = 0

    class Watched(list[Example]):
        def __getitem__(self, row: Any) -> Any:
            seen[session].append(row)
            return super().__getitem__(row)

    held: list[StageState] = []

    def after_step(underway: Callable[[], StageState]) -> None:
        held.append(kept(underway()))
        if held[-1].step == 4:
            raise BrokenOffError

    watched, plan = Watched(EXAMPLES), plain_plan()
    with pytest.raises(BrokenOffError):
        run_plain(stage_run(gpt2(), plan, examples=watched, after_step=after_step))
    session = 1
    run_plain(stage_run(gpt2(), plan, examples=watched, resume_from=held[-1]))
    read = seen[0] + seen[1]
    assert len(read) == EPOCHS * RECORDS
    assert all(sorted(read[start : start + RECORDS]) == list(range(RECORDS)) for start in range(0, len(read), RECORDS))


@pytest.mark.parametrize("step", [1, 3, 7])
def test_noise_alone_goes_on_where_it_was(step: int) -> None:
    def stage(noise: KeyStream) -> Stage:
        plan = stage_plan(OPTIMIZERS["adamw"], nothing=True)
        return lambda model, **resuming: run_noise(
            stage_run(model, plan, held_out=held_out(model), **resuming), noise=noise
        )

    twin = gpt2()
    whole = stage(insecure_stream(3, "noise"))(twin)
    result, model = interrupted(stage(insecure_stream(3, "noise")), step)
    same(result, whole, model, twin)


@pytest.mark.parametrize("most", range(STEPS + 1))
def test_a_stage_takes_no_more_steps_than_it_may(tmp_path: Path, most: int) -> None:
    result = private(OPTIMIZERS["sgd"], tmp_path)(gpt2(), max_steps=most)
    events = [event for event in read_journal(tmp_path / "journal") if isinstance(event, SubsampledGaussian)]
    assert sum(event.steps for event in events) == most == len(result.mean_norms)
    assert result.ended_after == (None if most == STEPS else most)
    assert len(result.perplexities) == most // 3


@settings(max_examples=20)
@given(st.sampled_from(sorted(OPTIMIZERS)), st.integers(0, 4), st.integers(1, 3), st.integers(0, 2**16))
def test_an_optimizer_that_was_restored_steps_as_the_other(name: str, before: int, after: int, seed: int) -> None:
    [stage] = [stage_plan(OPTIMIZERS[name]).stage]
    model, twin = gpt2(), gpt2()
    optimizer = make_optimizer(model, stage)
    generator = torch.Generator().manual_seed(seed)

    def step(*pairs: tuple[Any, torch.optim.Optimizer]) -> None:
        gradients = [torch.randn(part.shape, generator=generator) for part in trainable(pairs[0][0])]
        for network, its in pairs:
            for parameter, gradient in zip(trainable(network), gradients, strict=True):
                parameter.grad = gradient.clone()
            its.step()

    for _ in range(before):
        step((model, optimizer))
    twin.load_state_dict(model.state_dict())
    restored = make_optimizer(twin, stage)
    restore_optimizer(restored, copy.deepcopy(optimizer_tensors(optimizer)))
    for _ in range(after):
        step((model, optimizer), (twin, restored))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
