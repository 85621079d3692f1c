"""Accidents that a run meets itself: it says what can be done, and leaves what can be gone on with."""

import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from atdp_cli.errors import DivergedError, RunError
from atdp_cli.events import Event, StateSaved, ignore
from atdp_cli.jobs.opening import open_model
from atdp_cli.jobs.room import state_bytes
from atdp_cli.jobs.states import numbers
from atdp_cli.jobs.workplace import read_record
from atdp_cli.training import stage
from atdp_cli.training.recipe import AdamW, Train, parse_recipe
from tests.jobs.resumption import Place, equal, finished, run, weights


def test_a_state_that_cannot_be_written_ends_no_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("atdp_cli.jobs.keeping.save_state", full)
    heard: list[Event] = []
    done = run(place.request(checkpoint_every=1e-9), notify=heard.append)
    assert done is not None
    assert any("No space left" in getattr(event, "reason", "") for event in heard)
    assert not any(isinstance(event, StateSaved) for event in heard)


def test_what_diverges_says_that_going_on_would_too(place: Place) -> None:
    [stage] = parse_recipe("dp-sgd")
    assert isinstance(stage, Train)
    fast = place.request((replace(stage, optimizer=AdamW(learning_rate=1e6)),), checkpoint_every=1e-9)
    with pytest.raises(DivergedError) as ended:
        run(fast)
    assert "--force" in str(ended.value)
    assert "--resume" in str(ended.value)
    assert "same rate" in str(ended.value)
    assert numbers(place.folder / "out.partial")


def test_memory_that_runs_out_leaves_what_can_be_gone_on_with(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = stage._mean_gradient, 0

    def tight(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise torch.OutOfMemoryError("out of memory")
        return original(*arguments)

    monkeypatch.setattr(stage, "_mean_gradient", tight)
    request = place.request("no-dp", checkpoint_every=1e-9, command=("atdp", "harden", "model"))
    with pytest.raises(RunError) as ended:
        run(request)
    assert "after step 3 of 6 of stage no-dp" in str(ended.value)
    assert "atdp harden model --resume" in str(ended.value)
    done = finished(replace(request, resume=True))
    monkeypatch.setattr(stage, "_mean_gradient", original)
    assert equal(weights(done), weights(finished(place.request("no-dp", out="whole"))))


def test_a_run_that_fails_before_it_has_a_state_leaves_nothing(place: Place) -> None:
    [stage] = parse_recipe("dp-sgd")
    assert isinstance(stage, Train)
    fast = place.request((replace(stage, optimizer=AdamW(learning_rate=1e30)),))
    with pytest.raises(DivergedError):
        run(fast)
    assert not list(place.folder.iterdir())


def test_too_small_a_disk_is_refused_before_anything_is_trained(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=32 * 2**20 + 400_000))
    with pytest.raises(RunError, match="--checkpoint-every 0") as refused:
        run(place.request(checkpoint_every=10.0))
    assert "\n" not in str(refused.value)
    assert not list(place.folder.iterdir())
    assert finished(place.request(checkpoint_every=0.0)).steps == 6


def test_the_room_that_is_asked_for_is_what_states_take(place: Place) -> None:
    """The largest state of a run on disk, against the estimate; the difference is names and the journal."""
    pulled = AdamW(weight_decay=0.5, towards="start")
    [stage] = parse_recipe("dp-sgd")
    assert isinstance(stage, Train)
    for recipe in ((stage,), (replace(stage, optimizer=pulled),)):
        request = place.request(recipe)
        assert run(replace(request, force=True), stop=3) is None
        taken = sum(path.stat().st_size for path in (place.folder / "out.partial" / "state-1").iterdir())
        model = open_model(request, ignore).checkpoint.model
        assert 0.95 * taken < state_bytes(model, request.recipe) <= taken


def test_states_are_numbered_and_two_stay(place: Place) -> None:
    request = place.request(checkpoint_every=1e-9)
    assert run(request, stop=4) is None
    root = place.folder / "out.partial"
    assert numbers(root) == [4, 3]
    assert run(replace(request, resume=True), stop=1) is None
    assert numbers(root) == [5, 4]
    record = read_record(root)
    assert record is not None
    assert (record.sessions, record.finished) == (2, None)
