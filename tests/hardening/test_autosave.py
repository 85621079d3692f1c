"""When a state is saved: by a clock that no jump of the system's time moves, and before more is lost than steps."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atdp_cli.errors import InterruptedRunError
from atdp_cli.events import Event, StateSaved, ignore
from atdp_cli.hardening.checkpoint import autosave
from atdp_cli.hardening.progress import Progress
from atdp_cli.hardening.workspace import Workspace, checkpoint_numbers

MODEL: Any = torch.nn.Linear(2, 2)


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    (tmp_path / "journal.jsonl").touch()
    return Workspace(root=tmp_path)


def jumping() -> Iterator[float]:
    """A system's time that goes forwards and back by years."""
    while True:
        yield from (1e9, 0.0, 2e9, -5.0)


@pytest.mark.ci
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=12),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_states_are_as_far_apart_as_was_asked_for(
    work: Workspace, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, bool]], minutes: float
) -> None:
    now, times = 0.0, jumping()
    heard: list[Event] = []
    monkeypatch.setattr(time, "time", lambda: next(times))
    keep = autosave(
        work,
        MODEL,
        ("weight",),
        minutes=minutes,
        elapsed=lambda: now,
        stop_requested=lambda: False,
        notify=heard.append,
        clock=lambda: now,
    )
    last, expected = 0.0, []
    for number, (passed, between) in enumerate(steps):
        now += passed
        keep(lambda number=number: Progress(stage=number), between=between)  # type: ignore[misc]
        if minutes and (between or now - last >= 60 * minutes):
            expected.append(number + 1)
            last = now
    assert [event.stage for event in heard if isinstance(event, StateSaved)] == expected


@pytest.mark.parametrize("minutes", [0.0, 10.0])
def test_who_asks_for_a_stop_gets_a_state_and_the_end(work: Workspace, minutes: float) -> None:
    asked = iter([False, False, True])
    keep = autosave(
        work,
        MODEL,
        ("weight",),
        minutes=minutes,
        elapsed=lambda: 1.0,
        stop_requested=lambda: next(asked),
        notify=ignore,
        clock=lambda: 0.0,
    )
    for _ in range(2):
        keep(Progress, between=False)
    assert checkpoint_numbers(work.root) == []
    with pytest.raises(InterruptedRunError):
        keep(Progress, between=False)
    assert checkpoint_numbers(work.root) == [1]
