"""The scores of a public base model are kept for the next audit, and only what that model gives is taken."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import GPT2LMHeadModel

from atdp_cli.audit import rank as ranking
from atdp_cli.audit.canary import Target, parse_template
from atdp_cli.audit.hypothesis_tests import SampleRule
from atdp_cli.audit.rank import Pool, all_scores, pool_of, reference_scores
from atdp_cli.events import Event, NodesScored, ignore
from tests.audit.conftest import gpt2

WEIGHTS = {"model.safetensors": "ab"}
TEMPLATE = parse_template("My ID is {digits:3}")


@pytest.fixture
def pool(bpe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pool:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ranking, "MIN_KEPT", 1000)
    return pool_of(bpe, TEMPLATE, [], ignore)


@pytest.fixture
def model(bpe: Any) -> GPT2LMHeadModel:
    return gpt2(len(bpe))


def scored(model: Any, pool: Pool, weights: dict[str, str]) -> tuple[Any, int]:
    """The scores, and how many positions the model ran through for all candidates."""
    heard: list[Event] = []
    scores = reference_scores(model, pool, weights, name="base", notify=heard.append)
    return scores, sum(isinstance(event, NodesScored) for event in heard)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "atdp").glob("scores-*.npz"))


def test_the_second_audit_takes_them(model: Any, pool: Pool, tmp_path: Path) -> None:
    expected = all_scores(model, pool, "base", ignore)
    first, passes = scored(model, pool, WEIGHTS)
    again, none = scored(model, pool, WEIGHTS)
    assert np.array_equal(first, expected)
    assert np.array_equal(again, expected)
    assert (passes > 0, none) == (True, 0)
    [file] = files(tmp_path)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


def test_other_weights_are_scored_by_themselves(model: Any, pool: Pool, tmp_path: Path) -> None:
    scored(model, pool, WEIGHTS)
    _, passes = scored(model, pool, {"model.safetensors": "cd"})
    assert passes
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize("damage", ["cut", "other model", "short", "nan"])
def test_what_the_model_does_not_give_is_not_taken(model: Any, pool: Pool, tmp_path: Path, damage: str) -> None:
    expected, _ = scored(model, pool, WEIGHTS)
    [file] = files(tmp_path)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        other = {"other model": expected - 0.01, "short": expected[:-1], "nan": np.full_like(expected, np.nan)}
        np.savez(file, scores=other[damage])
    actual, passes = scored(model, pool, WEIGHTS)
    assert passes
    assert np.array_equal(actual, expected)
    assert scored(model, pool, WEIGHTS)[1] == 0


def test_a_sample_holds_the_secrets_and_is_not_kept(bpe: Any, model: Any, tmp_path: Path, pool: Pool) -> None:
    drawn = pool_of(
        bpe, TEMPLATE, [Target(index=7, repeats=1)], ignore, sample=SampleRule(size=50, only_where_expensive=False)
    )
    assert drawn.sampled
    assert scored(model, drawn, WEIGHTS)[1]
    assert not files(tmp_path)


def test_a_folder_that_cannot_be_written_is_done_without(
    model: Any, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert np.array_equal(scored(model, pool, WEIGHTS)[0], all_scores(model, pool, "base", ignore))
