"""What is tried before a run: an engine only where one clips, and of a large model a part of a batch."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from torch.utils.flop_counter import FlopCounterMode

from atdp_cli.events import Event
from atdp_cli.jobs.harden import preflight
from atdp_cli.jobs.harden.model import load_model
from atdp_cli.jobs.harden.request import plan_request
from atdp_cli.training.recipe import Train
from tests.runs.resumption import Place


@pytest.mark.parametrize(
    ("recipe", "engine"), [("no-dp", "loop"), ("redacted", "loop"), ("dp-sgd", "bookkeeping"), ("jft", "bookkeeping")]
)
def test_engines_are_compared_only_where_one_clips(place: Place, recipe: str, engine: str) -> None:
    """`loop` is what the others are compared with, and takes no time to choose."""
    heard = list[Event]()
    loaded = load_model(place.request(recipe), heard.append)
    assert loaded.engine.name == engine
    assert not heard


@pytest.mark.parametrize("recipe", ["no-dp", "dp-sgd"])
def test_an_estimate_depends_little_on_how_much_is_timed(
    place: Place, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a second is so many floating-point operations; records of one length, since few are timed."""
    corpus = place.folder / "even.txt"
    corpus.write_text("my order is late and nobody answers\n" * 200)
    small = place.request(recipe, max_records=200, spans=None, data=(corpus,))
    stages = tuple(replace(stage, epochs=1) for stage in small.recipe if isinstance(stage, Train))
    planned = plan_request(small.replace(recipe=stages))
    loaded = load_model(planned.request, lambda _: None)
    timed: list[float] = []

    def operations(work: Callable[[], object]) -> float:
        with FlopCounterMode(display=False) as counter:
            work()
        timed.append(float(counter.get_total_flops()))
        return timed[-1]

    monkeypatch.setattr(preflight, "_seconds", operations)
    whole = preflight.estimate_seconds(planned, loaded)
    most = max(timed)
    timed.clear()
    monkeypatch.setattr(preflight, "TIMED_OPERATIONS", most / 4)
    part = preflight.estimate_seconds(planned, loaded)
    assert max(timed) < most / 2
    assert part == pytest.approx(whole, rel=0.1)
