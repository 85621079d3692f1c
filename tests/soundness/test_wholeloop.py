"""The whole loop, audited from one run: 1,000 records in or out by a coin, 200 guesses fixed in advance, 300 steps.

`tests/deep/test_soundness.py` has twenty seeds, the other recipe and more ways to break the loop.
"""

from pathlib import Path

import pytest

from tests.soundness.broken import Repeating, Silent, unclipped
from tests.soundness.wholeloop import TARGET, audit, check_sound, right_engine


@pytest.mark.ci
def test_no_more_is_proved_than_was_spent(tmp_path: Path) -> None:
    check_sound("dp-sgd", audit("dp-sgd", 0, tmp_path))


@pytest.mark.ci
def test_noise_switched_off_is_found(tmp_path: Path) -> None:
    assert audit("dp-sgd", 0, tmp_path, noise=Silent()).drift > TARGET


@pytest.mark.deep
def test_clipping_switched_off_is_found(tmp_path: Path) -> None:
    assert audit("dp-sgd", 0, tmp_path, engine=unclipped(right_engine())).drift > TARGET


@pytest.mark.deep
def test_the_same_noise_in_every_step_is_found(tmp_path: Path) -> None:
    noise = Repeating(0)
    assert audit("dp-sgd", 0, tmp_path, engine=noise.again(right_engine()), noise=noise).spread > TARGET
