"""A whole private run over records that are in by a coin, and an auditor who guesses the coins from what it gives away.

Steinke, Nasr and Jagielski 2023. An out record is an empty one at its place: zero-out adjacency, N and q as planned.
The auditor knows every record and every step's parameters, which ε covers, and nothing that is secret.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from atdp_cli.audit.epsilon_bounds import in_out_bound
from atdp_cli.events import Event, StepDone, ignore
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.journal import open_journal, read_journal
from atdp_cli.privacy.ledger import private_events
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.training.clip.engine import ClippingEngine, trainable
from atdp_cli.training.clip.per_record import record_gradient
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.examples import Example
from atdp_cli.training.plan import CorpusFacts, Plan, make_plan
from atdp_cli.training.recipe import DPSGD, RECIPES, SGD, Recipe
from atdp_cli.training.solve import solve_noise
from atdp_cli.training.trainer import Randomness, run_private
from tests.soundness.tiny import EMPTY, llama, pairs
from tests.training.stages import stage_run, trained

RECORDS = 1000
EACH_WAY = 100
"""Guesses of in, and as many of out; the auditor abstains on the other records."""

DELTA = 1e-5
TARGET = 2.5
BATCH = 100
EPOCHS = 30
CLIP = 0.1
LEARNING_RATE = 0.1
VOCABULARY, WIDTH = 1024, 16


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a run spent by its journal, and what two auditors prove of it with 95 % confidence each.

    Attributes:
        spent: ε of the journal's events by PLD.
        drift: By how far the parameters went along a record's gradient in all.
        spread: By how much the steps differ along a record's gradient.
    """

    spent: float
    drift: float
    spread: float


@functools.cache
def plan_of(name: str) -> Plan:
    """The recipe's only stage: 300 steps of SGD that spend ε = 2.5."""
    [stage] = trained(RECIPES[name])
    assert isinstance(stage.mechanism, DPSGD)
    mechanism = replace(stage.mechanism, clip_norm=CLIP, expected_batch=BATCH)
    recipe = (replace(stage, epochs=EPOCHS, mechanism=mechanism, optimizer=SGD(learning_rate=LEARNING_RATE)),)

    def planned(candidate: Recipe) -> Plan:
        return make_plan(
            candidate,
            CorpusFacts(records=RECORDS, relation=hypothetical("line")),
            delta=DELTA,
            checkpoint_history="public",
        )

    return planned(solve_noise(recipe, TARGET, planned))


@functools.cache
def right_engine() -> ClippingEngine:
    """The engine that a run takes by default."""
    return select_engine(llama(VOCABULARY, WIDTH), "auto", ignore).run


@functools.cache
def records_of(name: str, windows: int = 1) -> list[Example]:
    """The records as the recipe weighs them."""
    return pairs(RECORDS, VOCABULARY, trained(RECIPES[name])[0].objective, windows=windows)


@functools.cache
def directions() -> torch.Tensor:
    """Each record's gradient at the start at length 1, less what all have in common; [records, parameters].

    A record's weights and number of windows change none of it: it has one target, weighed alike in all of them.
    """
    model = llama(VOCABULARY, WIDTH)
    rows = [_flat(record_gradient(model, example, trainable(model))) for example in records_of("dp-sgd")]
    actual = torch.stack([row / row.norm() for row in rows])
    return actual - actual.mean(0)


def audit(
    name: str,
    seed: int,
    folder: Path,
    *,
    windows: int = 1,
    engine: ClippingEngine | None = None,
    sample: KeyStream | None = None,
    noise: KeyStream | None = None,
) -> Bounds:
    """One run and both auditors.

    Args:
        seed: Of the coins and of the streams that are not given.
        windows: Of each record, all equal.
    """
    model = llama(VOCABULARY, WIDTH)
    coins = np.random.default_rng(seed).integers(0, 2, RECORDS).astype(np.bool_)
    [stage] = plan_of(name).training
    visited = [_flat(trainable(model))]

    def watch(event: Event) -> None:
        if isinstance(event, StepDone):
            visited.append(_flat(trainable(model)))

    with open_journal(folder / f"journal-{seed}") as journal:
        records = [example if coin else EMPTY for example, coin in zip(records_of(name, windows), coins, strict=True)]
        run_private(
            stage_run(model, stage, examples=records, notify=watch),
            engine=engine or right_engine(),
            randomness=Randomness(
                sample=sample or insecure_stream(seed, "sample"), noise=noise or insecure_stream(seed, "noise")
            ),
            journal=journal,
        )
    events = private_events(read_journal(folder / f"journal-{seed}"))
    sigmas = np.repeat(stage.noise_multipliers, stage.steps_per_epoch)
    descents = -(torch.stack(visited).diff(dim=0) @ directions().T).double().numpy()
    return Bounds(
        spent=epsilon_pld(events, DELTA, grid=plan_of(name).ledger.grid),
        drift=_bound((descents / sigmas[:, None] ** 2).sum(0), coins),
        spread=_bound((descents / sigmas[:, None]).var(0), coins),
    )


def check_sound(name: str, actual: Bounds) -> None:
    """As much was spent as planned. Neither auditor proves more, and one proves something: the records do train."""
    assert plan_of(name).steps == 300
    assert 2 <= actual.spent <= TARGET
    assert 0 < actual.drift < actual.spent
    assert actual.spread < actual.spent


def _bound(scores: npt.NDArray[np.float64], coins: npt.NDArray[np.bool_]) -> float:
    """ε's bound from guessing that the records with the highest scores are in and those with the lowest are out."""
    order = np.argsort(scores)
    right = int(coins[order[-EACH_WAY:]].sum() + (~coins[order[:EACH_WAY]]).sum())
    return in_out_bound(records=RECORDS, guesses=2 * EACH_WAY, correct=right, delta=DELTA)


def _flat(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.detach().flatten() for part in parts])
