"""A hundred kills from outside: no step goes uncounted, no run is lost.

`make test` has ten kills (`tests/hardening/test_kills.py`).
"""

from pathlib import Path

import pytest

from tests.crashing import MOMENTS
from tests.hardening.test_kills import command, kill_often

pytestmark = pytest.mark.deep


def test_a_hundred_kills(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path) -> None:
    seen = kill_often(command(checkpoint_folder, corpus, span_file), tmp_path, kills=100, each=6, seed=2)
    assert seen.kills == 100
    # Each moment that matters was met, and left what it is waited for.
    assert all(seen.moments[name] >= 5 for name in MOMENTS), seen.moments
    for kind in ("half a state", "a line without its step", "a part of the model", "all was written"):
        assert seen.left[kind] >= 1, seen.left


def test_kills_under_a_limit_of_epsilon(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path) -> None:
    """What is lost cannot be had twice: the run ends earlier, and never above its target."""
    line = command(checkpoint_folder, corpus, span_file, "--target-epsilon", 3)
    seen = kill_often(line, tmp_path, kills=30, each=3, seed=3, limit=3.0)
    assert seen.kills == 30
