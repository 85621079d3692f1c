"""The soundness harnesses at length: twenty seeds of two recipes, costlier ways to break the loop, every case."""

from pathlib import Path
from typing import Any

import pytest

from atdp_cli.errors import RunError
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.training import trainer
from tests.soundness import worlds
from tests.soundness.broken import Everyone, window_by_window
from tests.soundness.wholeloop import TARGET, audit, check_sound, right_engine
from tests.soundness.worlds import Case, all_cases

WINDOWS = 8


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder: Path) -> Any:
    return load_tokenizer(checkpoint_folder)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("recipe", ["dp-sgd", "atdp"])
def test_no_more_is_proved_than_was_spent(recipe: str, seed: int, tmp_path: Path) -> None:
    check_sound(recipe, audit(recipe, seed, tmp_path))


@pytest.mark.deep
def test_records_of_many_windows_are_no_exception(tmp_path: Path) -> None:
    check_sound("dp-sgd", audit("dp-sgd", 0, tmp_path, windows=WINDOWS))


@pytest.mark.deep
def test_clipping_window_by_window_is_found(tmp_path: Path) -> None:
    engine = window_by_window(right_engine())
    assert audit("dp-sgd", 0, tmp_path, windows=WINDOWS, engine=engine).drift > TARGET


@pytest.mark.deep
def test_taking_everyone_in_every_step_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the loop, which refuses so large a sample, and by the harness where the loop does not look."""
    with pytest.raises(RunError, match="above the 203 that the noise covers"):
        audit("dp-sgd", 0, tmp_path, sample=Everyone())
    monkeypatch.setattr(trainer, "refuse_larger", lambda drawn, largest: None)
    assert audit("dp-sgd", 0, tmp_path, sample=Everyone()).drift > TARGET


@pytest.mark.deep
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_a_record_moves_the_sum_by_at_most_c(case: Case, tokenizer: Any, tmp_path: Path) -> None:
    worlds.check(case, tokenizer, tmp_path)
