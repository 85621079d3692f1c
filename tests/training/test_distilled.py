"""Distillation from a stage's start: what its loss is, what it keeps, and where it is chosen and refused."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from atdp_cli.errors import UsageError
from atdp_cli.privacy.ledger import CheckpointHistory
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.gradients import gradient_sum
from atdp_cli.training.objectives import Distilled, Objective, Uniform
from atdp_cli.training.plan import CorpusFacts, StagePlan, make_plan
from atdp_cli.training.recipe import RECIPES, AdamW, Train
from atdp_cli.training.search import WARMUP, Effort
from atdp_cli.training.trainer import run_plain
from tests.training.clipping.models import build, relative
from tests.training.stages import stage_run, trained
from tests.training.test_unlearning import RECORDS, check_resumption, moved

ARCHITECTURES = ("GPT-2", "Llama", "T5")


def examples(objective: Objective) -> list[Example]:
    return [make_example(record.windows, objective) for record in RECORDS]


def with_source(example: Example) -> Example:
    """The record as an encoder-decoder reads it: each window answers another text."""
    draw = np.random.default_rng(len(example.windows))
    windows = tuple(replace(window, source=draw.integers(2, 50, 6)) for window in example.windows)
    return replace(example, windows=windows)


def logits(model: Any, window: Any) -> torch.Tensor:
    """Those from which each token but the first is predicted, a window at a time and without padding."""
    ids = torch.from_numpy(window.token_ids)[None]
    if window.source is None:
        return model(input_ids=ids).logits[0, :-1]  # type: ignore[no-any-return]
    source = torch.from_numpy(window.source)[None]
    return model(input_ids=source, decoder_input_ids=ids).logits[0, :-1]  # type: ignore[no-any-return]


def by_hand(model: Any, start: Any, example: Example, share: float) -> torch.Tensor:
    """The loss of a record, token by token."""
    loss = torch.zeros((), dtype=torch.float64)
    for window in example.windows:
        ours, theirs = logits(model, window), logits(start, window).detach()
        for place, (now, before) in enumerate(zip(ours, theirs, strict=True), start=1):
            surprise = -now.log_softmax(0)[window.token_ids[place]]
            divergence = (before.softmax(0) * (before.log_softmax(0) - now.log_softmax(0))).sum()
            loss = loss + (surprise if window.sensitive[place] else (1 - share) * surprise + share * divergence)
    return loss


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_is_that_of_the_loss(architecture: str, share: float) -> None:
    """By autograd of the formula in fp64, of records that share a padded batch, with one window or several."""
    start = build(architecture).double()
    model, records = moved(start), examples(Distilled(share=share))
    if architecture == "T5":
        records = [with_source(record) for record in records]
    parameters = trainable(model)
    loss = torch.stack([by_hand(model, start, record, share) for record in records]).sum()
    expected = torch.autograd.grad(loss, parameters, materialize_grads=True)
    before = [parameter.detach().clone() for parameter in trainable(start)]
    values = copy.deepcopy(model.state_dict())
    for tokens in (1, 4096):
        assert relative(gradient_sum(model, records, tokens=tokens, start=before), expected) < 1e-10
    assert all(torch.equal(values[name], value) for name, value in model.state_dict().items())


def plan_of(objective: Objective, *, epochs: int, rate: float = 1e-2) -> StagePlan:
    [plain] = trained(RECIPES["no-dp"])
    optimizer = AdamW(learning_rate=rate, weight_decay=0.0)
    stage = replace(plain, epochs=epochs, objective=objective, optimizer=optimizer)
    corpus = CorpusFacts(records=len(RECORDS), relation=hypothetical("line"))
    return make_plan((stage,), corpus, delta=1e-6, checkpoint_history="public").training[0]


@torch.no_grad()
def divergence(model: Any, start: Any) -> float:
    """The mean KL(start ‖ model) of unflagged tokens."""
    actual = [
        functional.kl_div(now.log_softmax(-1), before.log_softmax(-1), log_target=True, reduction="none").sum(-1)[
            torch.from_numpy(~window.sensitive[1:])
        ]
        for record in RECORDS
        for window in record.windows
        for now, before in ((logits(model, window), logits(start, window)),)
    ]
    return float(torch.cat(actual).mean())


@torch.no_grad()
def surprise(model: Any) -> float:
    """The mean −log p of flagged tokens."""
    actual = [
        functional.cross_entropy(logits(model, window), torch.from_numpy(window.token_ids[1:]), reduction="none")[
            torch.from_numpy(window.sensitive[1:])
        ]
        for record in RECORDS
        for window in record.windows
    ]
    return float(torch.cat(actual).mean())


@pytest.mark.ci
def test_a_stage_learns_what_is_flagged_and_keeps_what_it_said_elsewhere() -> None:
    """The more, the larger the share of the divergence."""
    kept_at: dict[float, float] = {}
    for share in (0.0, 0.5, 1.0):
        model = build("GPT-2")
        start, untaught = copy.deepcopy(model), surprise(model)
        objective = Distilled(share=share) if share else Uniform()
        run_plain(stage_run(model, plan_of(objective, epochs=40), examples=examples(objective)), seed=1)
        assert surprise(model) < untaught / 4
        kept_at[share] = divergence(model, start)
    assert kept_at[1.0] < kept_at[0.5] / 2 < kept_at[0.0] / 4


def test_an_interrupted_stage_has_the_start_that_it_had() -> None:
    check_resumption(plan_of(Distilled(), epochs=4), examples(Distilled()))


def test_a_level_of_a_range_test_compares_with_the_start_of_the_stage() -> None:
    """Not with the model that the level before it left."""
    start = build("GPT-2")
    before, plan, records = (
        tuple(trainable(copy.deepcopy(start))),
        plan_of(Distilled(), epochs=3),
        examples(Distilled()),
    )
    reported, alone, other = moved(start, 0.2), moved(start, 0.2), moved(start, 0.2)
    run_plain(stage_run(reported, plan, examples=records, start=before), seed=1)
    run_plain(stage_run(alone, plan, examples=records), seed=1)
    run_plain(stage_run(other, plan, examples=records, start=before), seed=1)
    assert all(torch.equal(a, b) for a, b in zip(reported.parameters(), other.parameters(), strict=True))
    assert divergence(reported, start) < divergence(alone, start)


def last_stage(
    checkpoint_history: CheckpointHistory, tune: Effort | None, *, recipe: str = "fitted-decoys", sharded: bool = False
) -> Train:
    corpus = CorpusFacts(records=4000, relation=hypothetical("line"))
    return (
        make_plan(
            RECIPES[recipe], corpus, delta=1e-6, checkpoint_history=checkpoint_history, tune=tune, sharded=sharded
        )
        .training[-1]
        .stage
    )


def test_it_is_chosen_where_a_tuned_stage_starts_from_what_may_have_memorised() -> None:
    actual = last_stage("unknown", "quick")
    assert (actual.objective, actual.warmup, actual.restore_best) == (Distilled(), WARMUP, None)
    assert last_stage("public", "quick").objective == Uniform()
    assert last_stage("unknown", "none") == actual
    assert last_stage("public", "none") == last_stage("public", "quick")
    assert last_stage("unknown", None).objective == Uniform()


def test_a_sharded_model_has_cross_entropy_in_its_place() -> None:
    assert last_stage("unknown", "quick", sharded=True).objective == Uniform()


def test_with_noise_it_is_refused() -> None:
    [stage] = trained(RECIPES["dp-sgd"])
    with pytest.raises(UsageError, match=r"has to train without noise for its objective, distilled\. Give"):
        replace(stage, objective=Distilled())
