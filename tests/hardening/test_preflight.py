"""What is tried before a run: an engine only where one clips, and of a large model a part of a batch."""

import pytest

from atdp_cli.events import Event
from atdp_cli.hardening.model import load_model
from tests.hardening.resumption import Place


@pytest.mark.parametrize(
    ("recipe", "engine"), [("no-dp", "per-record"), ("redacted", "per-record"), ("dp-sgd", "ghost"), ("jft", "ghost")]
)
def test_engines_are_compared_only_where_one_clips(place: Place, recipe: str, engine: str) -> None:
    """`per-record` is what the others are compared with, and takes no time to choose."""
    heard = list[Event]()
    loaded = load_model(place.request(recipe), heard.append)
    assert loaded.engine.name == engine
    assert not heard
