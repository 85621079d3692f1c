"""The audit of several models: what they share, and how the bounds on ε are put together."""

import gc
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import PreTrainedModel

from atdp_cli.audit.canary import Target
from atdp_cli.audit.epsilon import Games, plan_games, play_games
from atdp_cli.audit.epsilon_bounds import rank_bound
from atdp_cli.audit.exposure import Rank, rank_of
from atdp_cli.audit.plant import draw_canaries, plant_canaries
from atdp_cli.audit.request import AuditRequest, prepare_audit
from atdp_cli.audit.results import Audit, EpsilonBound, UnfinishedAudit
from atdp_cli.audit.run import audit_canary, audit_models
from atdp_cli.audit.stated_epsilon import DELTA, StatedEpsilon
from atdp_cli.audit.verdict import Limits
from atdp_cli.errors import UsageError
from atdp_cli.events import Event, RecordsRead

POOL = 10_000


def test_models_of_one_tokenizer_are_tokenised_for_once(checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    canaries = draw_canaries("My ID is {digits:3}", count=3, repeats=1, in_out=False)
    planted, manifest = tmp_path / "p.txt", tmp_path / "m.json"
    plant_canaries(corpus, planted, manifest, canaries, tokenizer=checkpoint_folder, force=False)
    heard: list[Event] = []
    request = AuditRequest(models=(checkpoint_folder,) * 4, manifest=manifest, reference=checkpoint_folder)
    audits = audit_canary(request, heard.append).models
    assert all(isinstance(audit, Audit) for audit in audits)
    finished = [event for event in heard if isinstance(event, RecordsRead) and event.done == event.total]
    assert len(finished) == 1
    assert json.loads(manifest.read_text())["coins"] is False


@pytest.mark.ci
def test_a_model_is_out_of_memory_before_the_next_one_loads(checkpoint_folder: Path, tmp_path: Path) -> None:
    """Whether it was audited or refused."""
    broken = tmp_path / "broken"
    shutil.copytree(checkpoint_folder, broken)
    tensors = load_file(broken / "model.safetensors")
    tensors["transformer.wte.weight"][0, 0] = np.nan
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    request = AuditRequest(models=(broken, checkpoint_folder) * 2, canary="My ID is 123")
    before, alive = models_alive(), []
    for actual in audit_models(prepare_audit(request), request, lambda _: None):
        alive.append((type(actual), models_alive() - before))
    assert alive == [(UnfinishedAudit, 0), (Audit, 0)] * 2


def models_alive() -> int:
    gc.collect()
    return sum(issubclass(type(alive), PreTrainedModel) for alive in gc.get_objects())


def ranked(*ranks: int, pool: int = POOL) -> list[Rank]:
    scores, lengths = -np.arange(pool, dtype=np.float64), np.ones(pool, dtype=np.int32)
    return [rank_of(scores, lengths, rank - 1) for rank in ranks]


def bounds(
    ranks: list[Rank], targets: list[Target], *, coins: bool, games: Games, pool: int = POOL
) -> list[EpsilonBound]:
    """What the games prove of a model that claims nothing, at an alpha of 0.05."""
    plan = plan_games(
        targets,
        pool=pool,
        coins=coins,
        ranked=True,
        games=games,
        limits=Limits(alpha=0.05),
        scores=1,
        claim=StatedEpsilon(epsilon=None, delta=DELTA, missing="nothing is claimed"),
    )
    return list(play_games(plan, ranks, targets, None))


def test_wins_are_counted_within_the_rank_that_was_fixed() -> None:
    ranks = (1, 100, 101, 9000)
    targets = [Target(index=rank - 1, repeats=1) for rank in ranks]
    (actual,) = bounds(ranked(*ranks), targets, coins=False, games=Games())
    assert (actual.method, actual.top, actual.guesses, actual.correct) == ("rank", math.isqrt(POOL), 4, 2)
    assert actual.confidence == pytest.approx(0.95)
    assert actual.finding == "no-claim"
    assert actual.attainable == rank_bound(pool=POOL, top=100, canaries=4, wins=4, delta=actual.delta)


def test_the_share_of_a_stratum_is_that_of_the_pool() -> None:
    """A secret of a small stratum wins only at the top of its own stratum, so that K names are never exceeded."""
    lengths = np.repeat(np.array([1, 2], dtype=np.int32), [9000, 1000])
    scores = -np.arange(POOL, dtype=np.float64)
    places = [89, 90, 9000 + 9, 9000 + 10]  # 90 and 10 of 100 names
    ranks = [rank_of(scores, lengths, place) for place in places]
    actual = bounds(ranks, [Target(index=place, repeats=1) for place in places], coins=False, games=Games(top=100))
    assert actual[0].correct == 2


def test_coins_share_the_confidence_with_ranks_and_half_are_guessed() -> None:
    ranks = (*range(1, 11), *range(9990, 10_000))
    targets = [Target(index=rank - 1, repeats=1, planted=rank < 100) for rank in ranks]
    in_out, rank = bounds(ranked(*ranks), targets, coins=True, games=Games())
    assert (in_out.guesses, in_out.correct) == (10, 10)
    assert (rank.guesses, rank.correct) == (10, 10)
    assert in_out.confidence == rank.confidence == pytest.approx(0.975)
    assert in_out.epsilon == in_out.attainable > 0


def test_a_sampled_rank_bounds_nothing() -> None:
    targets = [Target(index=0, repeats=1)]
    assert bounds(ranked(1), targets, coins=False, games=Games(), pool=10**9) == []


@pytest.mark.parametrize("games", [{"guesses": 3}, {"guesses": 0}, {"top": 0}])
def test_games_out_of_range_are_refused(games: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Games(**games)
