"""Faults planted in the recipe that we advise: its own claim is refuted, by the release, the decoys or the model.

Three games a run, at an alpha of 0.001 for all of them: see tests/deep/selective.py. The corpus is one of real chats
where it is at hand, else that of the quickstart. What the games proved, over real chats:

                              claim   at most   proved
    20 sound runs, release    3.09    3.61      0 to 0.21
    20 sound runs, the rest   0       3.45      0
    no noise in the release   3.09    3.61      3.61, over three seeds
    a decoy keeps a digit     0       3.61      1.86 to 2.22, over three seeds
    raw text in one epoch     0       7.70      2.72 to 2.75 by ranks, 2.24 to 2.51 by pairs, over three epochs
"""

from pathlib import Path

import pytest

from atdp_cli.detection.scan import load_pipeline
from tests.conftest import SHARED
from tests.deep.selective import (
    World,
    decoys_that_keep_a_digit,
    keeping_a_digit,
    make_world,
    play_on_decoys,
    play_on_model,
    play_on_release,
    raw_in_one_epoch,
    without_noise,
)

CHATS = SHARED / "data" / "abcd" / "valid.txt"
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "corpus.txt"
LINES = 300

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    text = (CHATS if CHATS.is_file() else QUICKSTART).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()][:LINES]
    return make_world(lines, load_pipeline(), tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("seed", range(20))
def test_a_sound_run_is_not_refuted(world: World, seed: int, tmp_path: Path) -> None:
    """Each claim could be: that is known before anything is looked at. Twenty runs, one false alarm in fifty suites."""
    games = {"release": play_on_release(world, seed), "decoys": play_on_decoys(world, seed)}
    games |= play_on_model(world, seed, tmp_path)
    assert set(games) == {"release", "decoys", "rank", "pair"}
    assert games["release"].claim > 1
    assert games["decoys"].claim == games["rank"].claim == games["pair"].claim == 0
    assert all(game.attainable > game.claim for game in games.values())
    assert not any(game.refuted for game in games.values())


@pytest.mark.parametrize("seed", range(3))
def test_a_release_without_noise_is_refuted(world: World, seed: int) -> None:
    actual = play_on_release(world, seed, fit=without_noise)
    assert actual.refuted


@pytest.mark.parametrize("seed", range(3))
def test_a_decoy_that_keeps_a_digit_is_refuted(world: World, seed: int) -> None:
    actual = play_on_decoys(world, seed, decoy_text=keeping_a_digit)
    assert actual.refuted


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_the_raw_text_in_one_epoch_is_refuted_by_the_model(world: World, epoch: int, tmp_path: Path) -> None:
    with raw_in_one_epoch(epoch):
        actual = play_on_model(world, epoch, tmp_path)
    assert any(game.refuted for game in actual.values())


@pytest.mark.deep
def test_the_texts_see_what_the_model_hides(world: World, tmp_path: Path) -> None:
    """A kept digit is lost on a model with a token for each whole number: the decoyed texts are audited first."""
    with decoys_that_keep_a_digit():
        assert not any(game.refuted for game in play_on_model(world, 0, tmp_path).values())
