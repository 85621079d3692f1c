"""The comparison of the default with no-dp: its corpora share no chat, and its shares are those of the seeds."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.experiments.shares import share, with_interval

SWEEP = Path(__file__).parents[2] / "examples" / "sweep"


@pytest.mark.parametrize("conversations", [False, True])
def test_no_chat_is_in_two_parts(tmp_path: Path, conversations: bool) -> None:
    chats = [[f"USR:chat {number} line {line}" for line in range(1 + number % 4)] for number in range(60)]
    (tmp_path / "chats.txt").write_text("<|endoftext|>".join("\n\n".join(chat) for chat in chats), encoding="utf-8")
    size = ("--conversations", "--records", "12") if conversations else ("--records", "20")
    command = [sys.executable, str(SWEEP / "abcd.py"), "chats.txt", "--out", "out", "--valid-records", "7", *size]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    parts = [(tmp_path / "out" / f"{name}.txt").read_text().splitlines() for name in ("train", "valid", "tune")]
    assert [len(lines) for lines in parts] == ([12, 7, 12] if conversations else [20, 7, 20])
    numbers = [{line.split()[1] for line in lines} for lines in parts]
    assert numbers[0].isdisjoint(numbers[1] | numbers[2])
    assert numbers[1].isdisjoint(numbers[2])


def test_shares_are_of_the_same_seed_and_intervals_cover_their_mean() -> None:
    assert share([2.0, 6.0, 10.0], [1.0, 3.0, 5.0]) == {"mean": 2.0, "low": 2.0, "high": 2.0}
    assert share([3.0], [2.0]) == {"mean": 1.5}
    assert [with_interval(share(values, [1.0] * len(values)), 2) for values in ([1.5], [1.5, 1.5])] == [
        "1.50",
        "1.50 (1.50 to 1.50)",
    ]
    draw, inside = np.random.default_rng(0), 0
    for _ in range(400):
        actual = share(list(np.exp(draw.normal(math.log(1.1), 0.1, 9))), [1.0] * 9)
        inside += actual["low"] <= 1.1 <= actual["high"]
    assert 0.92 <= inside / 400 <= 0.98  # 95 %, and three standard errors of 400 draws
