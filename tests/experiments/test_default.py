"""The comparison of the default with no-dp: its corpora share no chat, and its shares are those of the seeds."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from atdp_cli.errors import UsageError
from examples.experiments.figures import Tokens
from examples.experiments.shares import share, with_interval
from examples.experiments.table import Measured
from examples.sweep.default import AFTER, DEFAULT, NO_DP, earlier, tables

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


def measured(seed: int) -> Measured:
    draw = np.random.default_rng(seed)
    bits = tuple(draw.exponential(1.44, 5))
    increment = {"scope": "increment", "epsilon": 3.0, "delta": 1e-6, "assumptions": ["one"]}
    return Measured(
        exposures=bits,
        ratios=bits,
        p_values=(0.5,) * 5,
        p_ratios=(0.5,) * 5,
        perplexity=Tokens(all=draw.uniform(5, 6), sensitive=None, other=draw.uniform(4, 5)),
        sentence=Tokens(all=2.0, sensitive=None, other=2.0),
        seconds=draw.uniform(50, 60),
        guarantees=(increment | {"scope": "end_to_end", "epsilon": "inf"}, increment),
        verdict="PASS",
        resurfaced=bits,
        resurfaced_ratios=bits,
    )


def test_seeds_of_an_earlier_run_are_pooled(tmp_path: Path) -> None:
    seeds = [{name: measured(seed) for seed, name in enumerate((NO_DP, DEFAULT), 2 * first)} for first in range(4)]
    seeds[3][AFTER] = measured(9)
    settings = {"rate": "1e-4", "records": None, "canaries": 5, "repeats": 10}
    first, _ = tables(seeds[:2], settings)
    (tmp_path / "results.json").write_text(json.dumps(first), encoding="utf-8")
    pooled, text = tables([*earlier(tmp_path / "results.json", settings), *seeds[2:]], settings)
    whole, same = tables(seeds, settings)
    assert (json.dumps(pooled), text) == (json.dumps(whole), same)
    assert [(row["recipe"], row["seeds"]) for row in pooled["reached"]] == [(NO_DP, 4), (DEFAULT, 4), (AFTER, 1)]
    share_of = seeds[3][AFTER].seconds / seeds[3][NO_DP].seconds
    assert pooled["reached"][2]["seconds"] == {"mean": pytest.approx(share_of, abs=1e-4)}
    with pytest.raises(UsageError, match="other settings"):
        earlier(tmp_path / "results.json", settings | {"canaries": 17})


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
