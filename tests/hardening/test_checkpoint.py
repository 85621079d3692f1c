"""A saved state is whole or it is refused."""

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import InputError
from atdp_cli.events import ChoiceWarning, Event, ignore
from atdp_cli.hardening import checkpoint as states
from atdp_cli.hardening.checkpoint import (
    SavedState,
    latest_state,
    load_tensors,
    read_tensors,
    save_state,
    state_tensors,
)
from atdp_cli.hardening.progress import Progress, put_tensors
from atdp_cli.hardening.workspace import checkpoint_numbers
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.replacement.frequencies import TableShares
from atdp_cli.training.examples import Weighing
from atdp_cli.training.search import Trial, Tuned
from atdp_cli.training.state import BestEpoch, StageResult, StageState

figures = st.none() | st.floats(allow_nan=False)
perplexities = st.builds(Perplexity, all=figures, sensitive=figures, other=figures)
rates = st.floats(1e-9, 1)
searches = st.none() | st.builds(
    Tuned,
    learning_rate=rates,
    trials=st.lists(
        st.builds(Trial, learning_rate=rates, steps=st.integers(1, 99), loss=st.floats(allow_nan=False)), max_size=3
    ).map(tuple),
)
results = st.builds(
    StageResult,
    perplexities=st.lists(perplexities, max_size=3).map(tuple),
    mean_norms=st.lists(figures, max_size=4).map(tuple),
    not_finite=st.integers(0, 9),
    ended_after=st.none() | st.integers(0, 9),
    tokens=st.integers(0, 2**60),
    tuned=searches,
    restored_epoch=st.none() | st.integers(1, 9),
    seconds=st.floats(0, 1e9),
    processor_seconds=st.floats(0, 1e9),
)
weighings = st.builds(Weighing, clamped=figures, share=figures)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Of any shape, also of none and of no element, contiguous or not."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.uint8, torch.int64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    actual = torch.randint(0, 200, shape, generator=generator).to(dtype)
    return actual.transpose(0, -1) if len(shape) > 1 else actual


bests = st.none() | st.builds(
    BestEpoch,
    epoch=st.integers(1, 9),
    loss=st.floats(allow_nan=False),
    parameters=st.lists(tensors(), max_size=12).map(tuple),
)
underways = st.builds(
    StageState,
    step=st.integers(0, 99),
    result=results,
    optimizer=st.dictionaries(st.sampled_from(["0.exp_avg", "0.step", "11.exp_avg", "noise.steps"]), tensors()),
    start=st.lists(tensors(), max_size=12).map(tuple),
    seed=st.none() | st.integers(0, 2**63 - 1),
    best=bests,
    generators=st.dictionaries(st.sampled_from(["cpu", "cuda:0"]), tensors()),
)
shares = st.builds(
    TableShares,
    st.lists(st.integers(0, 2**41)),
    st.lists(st.text(max_size=5), max_size=3).map(tuple),
)
progresses = st.builds(
    Progress,
    stage=st.integers(0, 5),
    results=st.lists(st.tuples(results, weighings), max_size=3).map(tuple),
    stage_state=st.none() | underways,
    frequencies=st.none() | st.dictionaries(st.text(max_size=5), shares),
    tuned=searches,
    seconds=st.floats(0, 1e9),
)


def tied(seed: int) -> Any:
    """Two layers that share a matrix, a frozen one, and a buffer that is stored."""
    torch.manual_seed(seed)
    model = torch.nn.Module()
    model.one, model.two, model.frozen = (torch.nn.Linear(3, 3) for _ in range(3))
    model.two.weight = model.one.weight
    model.frozen.requires_grad_(False)
    model.register_buffer("counted", torch.randn(4))
    return model


TRAINED = ("one.weight", "one.bias", "two.bias")


def save(root: Path, progress: Progress, model: Any) -> None:
    save_state(root, progress, state_tensors(progress, model, TRAINED), journal=0)


def restore(state: SavedState, model: Any) -> Progress:
    tensors = read_tensors(state)
    load_tensors(model, tensors)
    return put_tensors(state.document.progress, tensors)


def same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor.dtype == other.dtype and tensor.shape == other.shape and torch.equal(tensor, other)


def same_underway(state: StageState | None, other: StageState | None) -> bool:
    if state is None or other is None:
        return state is other
    mappings = all(
        mine.keys() == theirs.keys() and all(same(mine[name], theirs[name]) for name in mine)
        for mine, theirs in ((state.optimizer, other.optimizer), (state.generators, other.generators))
    )
    starts = len(state.start) == len(other.start) and all(map(same, state.start, other.start))
    if state.best is None or other.best is None:
        bests_same = state.best is other.best
    else:
        mine, theirs = state.best, other.best
        bests_same = (mine.epoch, mine.loss) == (theirs.epoch, theirs.loss)
        bests_same &= all(same(*pair) for pair in zip(mine.parameters, theirs.parameters, strict=True))
    plain = (state.step, state.result, state.seed) == (other.step, other.result, other.seed)
    return mappings and starts and bests_same and plain


@contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.ci
@settings(max_examples=60)
@given(progresses, st.sampled_from([1, 60, states.SHARD_BYTES]))
def test_what_was_saved_is_what_is_restored(progress: Progress, shard: int) -> None:
    model, other = tied(1), tied(2)
    frozen = other.frozen.weight.clone()
    with folder() as root, patch.object(states, "SHARD_BYTES", shard):
        save_state(root, progress, state_tensors(progress, model, TRAINED), journal=17)
        state = latest_state(root, silent)
        assert state is not None
        actual = restore(state, other)
        assert [path.name for path in root.iterdir()] == ["state-1"]
    assert state.document.journal == 17
    assert (actual.stage, actual.results) == (progress.stage, progress.results)
    assert (actual.frequencies, actual.seconds) == (progress.frequencies, progress.seconds)
    assert actual.tuned == progress.tuned
    assert same_underway(actual.stage_state, progress.stage_state)
    assert all(same(dict(other.named_parameters())[name], dict(model.named_parameters())[name]) for name in TRAINED)
    assert other.two.weight is other.one.weight
    assert same(other.counted, model.counted)
    assert same(other.frozen.weight, frozen)


PROGRESS = Progress(
    stage=1,
    stage_state=StageState(
        step=3,
        result=StageResult(perplexities=(Perplexity(all=math.inf, sensitive=None, other=1.5),)),
        optimizer={"0.exp_avg": torch.ones(3, 3)},
        start=(torch.zeros(3, 3),),
        generators={"cpu": torch.get_rng_state()},
    ),
)


def silent(event: Event) -> None:
    """Nothing is to be told."""
    pytest.fail(str(event))


def two_states(root: Path) -> tuple[bytes, ...]:
    """The content of every file of the newest of two states."""
    for stage in (0, 1):
        save(root, Progress(stage=stage, stage_state=PROGRESS.stage_state), tied(stage))
    return tuple(path.read_bytes() for path in files(root))


def files(root: Path) -> list[Path]:
    return sorted((root / "state-2").iterdir())


@pytest.mark.ci
@settings(max_examples=80)
@given(st.data())
def test_a_state_with_any_damage_is_not_taken_and_the_one_before_it_is(data: st.DataObject) -> None:
    with folder() as root:
        contents = two_states(root)
        which = data.draw(st.integers(0, len(contents) - 1))
        path, content = files(root)[which], contents[which]
        kind = data.draw(st.sampled_from(["flip", "cut", "gone", "empty", "longer", "zeros"]))
        at = data.draw(st.integers(0, len(content) - 1))
        damaged = {
            "flip": content[:at] + bytes([content[at] ^ (1 << data.draw(st.integers(0, 7)))]) + content[at + 1 :],
            "cut": content[:at],
            "empty": b"",
            "longer": content + b"\0",
            "zeros": content[:at] + bytes(len(content) - at),
        }
        if kind == "gone":
            path.unlink()
        else:
            path.write_bytes(damaged[kind])
        heard: list[Event] = []
        state = latest_state(root, heard.append)
        assert state is not None
        if path.exists() and path.read_bytes() == content:
            assert state.folder.name == "state-2"
            return
        # A space more or less in the JSON changes nothing that is said.
        if state.folder.name == "state-2":
            assert path.name == "state.json"
            assert state.document.progress.cursor.stage == 1
            return
        assert (state.folder.name, state.document.progress.cursor.stage) == ("state-1", 0)
        assert [event.what for event in heard if isinstance(event, ChoiceWarning)] == ["state-2"]
        model = tied(7)
        restore(state, model)
        assert same(model.one.weight, tied(0).one.weight)


def test_where_no_state_is_whole_it_says_so(tmp_path: Path) -> None:
    two_states(tmp_path)
    for path in tmp_path.glob("*/*.safetensors"):
        path.write_bytes(b"")
    with pytest.raises(InputError, match="--force"):
        latest_state(tmp_path, ignore)


def test_what_is_half_written_is_no_state(tmp_path: Path) -> None:
    assert latest_state(tmp_path, silent) is None
    two_states(tmp_path)
    shutil.copytree(tmp_path / "state-2", tmp_path / ".state-3.part")
    (tmp_path / "state-x").mkdir()
    state = latest_state(tmp_path, silent)
    assert state is not None
    assert state.folder.name == "state-2"
    assert checkpoint_numbers(tmp_path) == [2, 1]
    save(tmp_path, PROGRESS, tied(0))
    assert checkpoint_numbers(tmp_path) == [3, 2]
    assert not (tmp_path / ".state-3.part").exists()


@pytest.mark.parametrize("call", range(6))
def test_a_state_that_cannot_be_written_leaves_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    two_states(tmp_path)
    made = 0
    original = os.open

    def full(path: Any, flags: int, *arguments: Any, **settings: Any) -> int:
        nonlocal made
        made += bool(flags & os.O_CREAT)
        if made > call and flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return int(original(path, flags, *arguments, **settings))

    monkeypatch.setattr(states, "SHARD_BYTES", 30)
    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space"):
        save(tmp_path, PROGRESS, tied(0))
    monkeypatch.setattr(os, "open", original)
    assert {path.name for path in tmp_path.iterdir()} == {"state-2"}
    assert latest_state(tmp_path, silent) is not None


def test_states_are_their_owners_alone(tmp_path: Path) -> None:
    two_states(tmp_path)
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_nothing_is_a_pickle(tmp_path: Path) -> None:
    from safetensors import safe_open

    two_states(tmp_path)
    for path in tmp_path.glob("*/tensors-*"):
        with safe_open(path, "pt") as opened:
            assert list(opened.keys())
    assert {path.suffix for path in tmp_path.glob("*/*")} == {".safetensors", ".json"}
