"""Accidents that a run meets itself: it says what can be done, and leaves what can be resumed."""

import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from atdp_cli.errors import DivergedError, InputError, RunError, UsageError
from atdp_cli.events import Event, StateSaved, StepDone, ignore
from atdp_cli.hardening.fingerprint import fingerprint
from atdp_cli.hardening.model import load_model
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.preflight import state_bytes
from atdp_cli.hardening.resume import steps_of
from atdp_cli.hardening.train import run_plan
from atdp_cli.hardening.workspace import checkpoint_numbers, read_record
from atdp_cli.privacy.journal import read_journal
from atdp_cli.training.gradients import mean_gradient
from atdp_cli.training.recipe import SGD, AdamW, Train, parse_recipe
from tests.hardening.resumption import Place, asking, equal, finished, ledger_of, report, run, weights


@pytest.mark.ci
def test_a_state_that_cannot_be_written_ends_no_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("atdp_cli.hardening.checkpoint.save_state", full)
    heard: list[Event] = []
    done = run(place.request(checkpoint_every=1e-9), notify=heard.append)
    assert done is not None
    assert any("No space left" in getattr(event, "reason", "") for event in heard)
    assert not any(isinstance(event, StateSaved) for event in heard)


@pytest.mark.ci
def test_what_diverges_says_that_going_on_would_too(place: Place) -> None:
    [stage] = parse_recipe("dp-sgd")
    assert isinstance(stage, Train)
    fast = place.request((replace(stage, optimizer=AdamW(learning_rate=1e6)),), checkpoint_every=1e-9)
    with pytest.raises(DivergedError) as ended:
        run(fast)
    assert "--force" in str(ended.value)
    assert "--resume" in str(ended.value)
    assert "same rate" in str(ended.value)
    assert checkpoint_numbers(place.folder / "out.partial")


@pytest.mark.ci
def test_memory_that_runs_out_leaves_what_can_be_resumed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = mean_gradient, 0

    def tight(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise torch.OutOfMemoryError("out of memory")
        return original(*arguments)

    monkeypatch.setattr("atdp_cli.training.trainer.mean_gradient", tight)
    request = place.request("no-dp", checkpoint_every=1e-9, command=("atdp", "harden", "model"))
    with pytest.raises(RunError) as ended:
        run(request)
    assert "keeps its last state" in str(ended.value)
    assert "atdp harden model --resume" in str(ended.value)
    done = finished(request.replace(resume=True))
    monkeypatch.setattr("atdp_cli.training.trainer.mean_gradient", original)
    assert equal(weights(done), weights(finished(place.request("no-dp", out="whole"))))


@pytest.mark.ci
def test_a_microbatch_that_memory_does_not_hold_has_spent_its_step(place: Place) -> None:
    """Its line was on the disk before; the step is taken again, and counted again."""
    request = place.request(checkpoint_every=1e-9)
    planned = plan_request(request)
    loaded, calls = load_model(planned.request, ignore), 0
    engine = loaded.engine.run

    def tight(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise torch.OutOfMemoryError("out of memory")
        return engine(*arguments)

    crowded = replace(loaded, engine=replace(loaded.engine, run=tight))
    with pytest.raises(RunError, match="keeps its last state"):
        run_plan(planned, fingerprint(planned), crowded, ignore, lambda: asking(None))
    root = place.folder / "out.partial"
    assert steps_of(read_journal(root / "journal.jsonl")) == 4
    assert (len(checkpoint_numbers(root)), list(root.glob(".*")), (root / "model").exists()) == (2, [], False)
    done = finished(request.replace(resume=True))
    assert (done.steps, steps_of(ledger_of(done).events), report(done)["public"]["repeated_steps"]) == (6, 7, 1)


@contextmanager
def poisoned(step: int) -> Iterator[None]:
    """What the optimizer makes of a parameter in its `step`th step is not a number."""
    steps = 0

    def poison(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            with torch.no_grad():
                optimizer.param_groups[0]["params"][0].view(-1)[5] = math.nan

    hook = register_optimizer_step_post_hook(poison)
    try:
        yield
    finally:
        hook.remove()


@pytest.mark.ci
@pytest.mark.parametrize(("recipe", "spent"), [("dp-sgd", 7), ("no-dp", 0), ("noise", 0)])
@pytest.mark.parametrize("step", [2, 4, 6])
def test_a_parameter_that_is_no_number_after_some_step_is_in_no_state_and_no_model(
    place: Place, recipe: str, spent: int, step: int
) -> None:
    request = place.request(recipe, checkpoint_every=1e-9)
    with poisoned(step), pytest.raises(DivergedError, match="keeps its last state"):
        run(request)
    assert not (place.folder / "out").exists()
    done = finished(request.replace(resume=True))
    assert (done.steps, steps_of(ledger_of(done).events)) == (6, spent)
    assert all(bool(tensor.isfinite().all()) for tensor in weights(done).values())


@pytest.mark.ci
def test_jumps_of_the_clock_neither_save_states_nor_lengthen_a_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, heard = time.time(), list[Event]()

    def jumping() -> float:
        nonlocal now
        now = -now
        return now

    monkeypatch.setattr(time, "time", jumping)
    before = time.monotonic()
    done = run(place.request(checkpoint_every=600.0), notify=heard.append)
    assert done is not None
    assert 0 < done.seconds <= time.monotonic() - before
    assert sum(isinstance(event, StepDone) for event in heard) == 6
    # One, behind the stage.
    assert [event.step for event in heard if isinstance(event, StateSaved)] == [0]


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel answers a read of /proc/self/mem with EIO")
@pytest.mark.parametrize("name", ["run.json", "journal.jsonl", "state.json", "tensors-000.safetensors"])
def test_a_file_whose_reading_fails_is_refused_or_the_state_before_it_is_taken(place: Place, name: str) -> None:
    request = place.request(checkpoint_every=1e-9)
    assert run(request, stop=5) is None
    root = place.folder / "out.partial"
    newest = root / f"state-{checkpoint_numbers(root)[0]}"
    path = root / name if (root / name).exists() else newest / name
    kept = path.rename(place.folder / "kept")
    path.symlink_to("/proc/self/mem")
    heard: list[Event] = []
    if path.parent == newest:
        done = run(request.replace(resume=True), notify=heard.append)
        assert done is not None
        assert any(f"{newest.name}" == getattr(event, "what", "") for event in heard)
        assert steps_of(ledger_of(done).events) == 7
        return
    with pytest.raises(InputError, match="cannot be read"):
        run(request.replace(resume=True))
    path.unlink()
    kept.rename(path)
    done = finished(request.replace(resume=True))
    assert steps_of(ledger_of(done).events) == 6


@pytest.mark.ci
def test_a_corpus_that_changes_under_a_run_changes_nothing_of_it_and_is_refused_afterwards(place: Place) -> None:
    """Records are read once, before the plan: what is trained is what the ledger is about."""
    whole = finished(place.request(out="whole"))
    corpus = place.folder / "corpus.txt"
    original = place.corpus.read_bytes()

    def changing(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 2:
            corpus.write_bytes(original.replace(b"Emma", b"Anna"))

    def attempt(stop: int | None) -> Any:
        corpus.write_bytes(original)
        request = place.request().replace(data=(corpus,), force=True)
        return run(request, stop=stop, notify=changing)

    done = attempt(None)
    assert equal(weights(done), weights(whole))
    shutil.rmtree(Path(done.output))
    assert attempt(4) is None
    with pytest.raises(UsageError, match="records are not the same"):
        run(place.request().replace(data=(corpus,), force=True, resume=True))


def test_a_run_that_fails_before_it_has_a_state_leaves_nothing(place: Place) -> None:
    [stage] = parse_recipe("dp-sgd")
    assert isinstance(stage, Train)
    fast = place.request((replace(stage, optimizer=AdamW(learning_rate=1e30)),))
    with pytest.raises(DivergedError):
        run(fast)
    assert not list(place.folder.iterdir())


@pytest.mark.ci
def test_too_small_a_disk_is_refused_before_anything_is_trained(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=32 * 2**20 + 400_000))
    with pytest.raises(RunError, match=r"run\.checkpoint-every=0") as refused:
        run(place.request(checkpoint_every=10.0))
    assert "\n" not in str(refused.value)
    assert not list(place.folder.iterdir())
    assert finished(place.request(checkpoint_every=0.0)).steps == 6


@pytest.mark.ci
def test_the_room_that_is_asked_for_is_what_states_take(place: Place) -> None:
    """The largest state of a run on disk, against the estimate; the difference is names and the journal."""
    [stage] = parse_recipe("dp-sgd")
    for recipe in ((stage,), (replace(stage, optimizer=SGD(learning_rate=0.1)),)):
        request = place.request(recipe)
        assert run(request.replace(force=True), stop=3) is None
        taken = sum(path.stat().st_size for path in (place.folder / "out.partial" / "state-1").iterdir())
        model = load_model(request, ignore).checkpoint.model
        assert 0.95 * taken < state_bytes(model, request.recipe) <= taken


@pytest.mark.ci
def test_states_are_numbered_and_two_stay(place: Place) -> None:
    request = place.request(checkpoint_every=1e-9)
    assert run(request, stop=4) is None
    root = place.folder / "out.partial"
    assert checkpoint_numbers(root) == [4, 3]
    assert run(request.replace(resume=True), stop=1) is None
    assert checkpoint_numbers(root) == [5, 4]
    record = read_record(root)
    assert record is not None
    assert (record.sessions, record.finished) == (2, None)
