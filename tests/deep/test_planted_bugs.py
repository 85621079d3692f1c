"""Bugs planted in the training loop: the audit of the finished model refutes the ε that the ledger claims.

`tests/soundness/test_wholeloop.py` and `tests/deep/test_soundness.py` find bugs from the inside, where every step's
parameters are seen and the auditor knows each record's gradient. Here nothing is seen but two models.

The runs are those of `tests/deep/planted.py`: 300 coins, of which the auditor guesses 150; the claim is ε = 1 for
leaving a record out and 2.12 for replacing it. What the games proved, over eight seeds, or four for many windows:

    a sound loop             0 to 0.02 and 0
    no noise                 1.46 to 2.57 and 2.58 to 3.45
    the batch's mean loss    1.22 to 2.42 and 2.20 to 3.13
    window by window         1.36 to 1.77 and 2.22 to 2.53, by canaries of 16 windows; nothing by those of one

Both games refuted in every one of these runs with a bug.
"""

from pathlib import Path

import pytest

from atdp_cli.training.clip.engine import ClippingEngine
from tests.deep.planted import BATCH, Bound, audited, batch_mean, checkpoint, silent
from tests.soundness.broken import window_by_window

WINDOWS = 16


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("base") / "model")


def refuted(actual: dict[str, Bound]) -> set[str]:
    """The games that refute the claim."""
    assert {"in-out", "rank"} <= set(actual)
    assert all((bound.finding == "refuted") == (bound.epsilon > bound.claim) for bound in actual.values())
    return {game for game, bound in actual.items() if bound.finding == "refuted"}


@pytest.mark.deep
@pytest.mark.parametrize(("seed", "windows"), [*((seed, 1) for seed in range(4)), (0, WINDOWS), (1, WINDOWS)])
def test_a_sound_loop_is_not_refuted(base: Path, seed: int, windows: int, tmp_path: Path) -> None:
    actual = audited(base, tmp_path, seed, windows=windows)
    assert actual["in-out"].claim == actual["rank"].claim
    assert refuted(actual) == set()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_no_noise_is_refuted(base: Path, seed: int, tmp_path: Path) -> None:
    assert refuted(audited(base, tmp_path, seed, noise=silent()))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_loss_of_the_batch_is_refuted(base: Path, seed: int, tmp_path: Path) -> None:
    assert refuted(audited(base, tmp_path, seed, engine=batch_mean(BATCH)))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_clipping_window_by_window_is_refuted_by_canaries_of_many_windows(
    base: Path, seed: int, tmp_path: Path
) -> None:
    assert refuted(audited(base, tmp_path, seed, windows=WINDOWS, engine=window_by_window))


@pytest.mark.deep
def test_clipping_window_by_window_is_out_of_reach_of_canaries_of_one_window(base: Path, tmp_path: Path) -> None:
    """Their gradients are clipped as they should be, so the power is that of a false alarm."""
    sound, bug = (tmp_path / name for name in ("sound", "bug"))
    for folder in (sound, bug):
        folder.mkdir()
    calls: list[int] = []

    def counted(engine: ClippingEngine) -> ClippingEngine:
        calls.append(1)
        return window_by_window(engine)

    assert audited(base, bug, 0, engine=counted) == audited(base, sound, 0)
    assert calls
