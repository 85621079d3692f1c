"""SIGKILL from outside, again and again: the ledger has every step that was taken, and the run comes to its end."""

import json
import math
import random
import time
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
import torch
from dp_accounting.pld import PLDAccountant
from transformers import AutoModelForCausalLM, AutoTokenizer

from atdp_cli.hardening.resume import steps_of
from atdp_cli.privacy.ledger import read_verified
from atdp_cli.reporting.verify import verify
from tests.cli.test_harden import OUTPUT_FILES, PRIVATE_FILES
from tests.crashing import OUT, Killed, kill_until_done, spent_lines, taken

STEPS = 24


def command(checkpoint: Path, corpus: Path, spans: Path, *more: object) -> list[object]:
    """24 steps with noise, saved after nearly each."""
    data = [
        "--data",
        corpus,
        "--spans",
        spans,
        "--tier",
        "low-entity",
        "--set",
        "run.max-records=60",
        "--checkpoint-history",
        "public",
    ]
    steps = ["--recipe", "dp-sgd", "--epochs", STEPS // 3, "--batch-size", 19]
    return ["harden", checkpoint, *data, *steps, "--set", "run.checkpoint-every=1e-4", "-q", *more]


def check_done(folder: Path, kills: int, *, limit: float | None = None) -> None:
    """What must hold at the end."""
    out, private, witness = folder / OUT, folder / f"{OUT}.private", folder / "witness"
    assert {path.name for path in folder.iterdir()} - {"witness", "log"} == {OUT, f"{OUT}.private"}
    assert {path.name for path in out.iterdir()} == OUTPUT_FILES
    assert {path.name for path in private.iterdir()} == PRIVATE_FILES
    ledger = read_verified(out / "privacy_ledger.json")
    spent = steps_of(ledger.events)
    assert spent == spent_lines(private)
    # A kill can come between a line and its step, and takes no more than one step with it.
    assert taken(witness) <= spent <= taken(witness) + kills
    report = json.loads((private / "privacy_report.json").read_text())
    public = report["public"]
    reported = {guarantee["scope"]: guarantee["epsilon"] for guarantee in public["guarantees"]}
    assert reported["end_to_end"] >= epsilon_of(ledger.model_dump(), taken(witness)) - 1e-9
    assert reported["end_to_end"] == pytest.approx(epsilon_of(ledger.model_dump(), spent), abs=1e-9)
    [stage] = public["stages"]
    steps = stage["ended_after"] or STEPS
    assert spent == steps + public["repeated_steps"]
    if limit is None:
        assert (stage["ended_after"], public["ended_early"]) == (None, None)
    else:
        assert reported["end_to_end"] <= limit
        assert (public["ended_early"] is not None) == (steps < STEPS)
        assert spent <= STEPS
    check_loads(out)
    assert verify(out) == ()


def epsilon_of(ledger: dict[str, Any], steps: int) -> float:
    """ε of so many of the ledger's steps, which are all alike, by dp_accounting used directly."""
    accountant = PLDAccountant(value_discretization_interval=ledger["grid"])
    event = ledger["events"][0]
    gaussian = dp_accounting.GaussianDpEvent(event["noise_multiplier"])
    accountant.compose(dp_accounting.PoissonSampledDpEvent(event["sampling_rate"], gaussian), steps)
    return float(accountant.get_epsilon(ledger["delta"]))


def check_loads(out: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(out)
    tokens = AutoTokenizer.from_pretrained(out)("the order was shipped", return_tensors="pt")
    with torch.no_grad():
        assert math.isfinite(float(model(**tokens).logits.square().mean()))


def kill_often(
    command: list[object], folder: Path, *, kills: int, each: int, seed: int, limit: float | None = None
) -> Killed:
    """So many kills over several runs, each of which is killed some times and then left to end."""
    dice, seen = random.Random(seed), Killed()
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir()
    started = time.monotonic()
    kill_until_done(command, undisturbed, dice, kills=0, seen=Killed(), seconds=0)
    seconds = time.monotonic() - started
    check_done(undisturbed, 0, limit=limit)
    while seen.kills < kills:
        before, place = seen.kills, folder / f"run-{seen.runs}"
        place.mkdir()
        kill_until_done(command, place, dice, kills=min(each, kills - seen.kills), seen=seen, seconds=seconds)
        check_done(place, seen.kills - before, limit=limit)
    print(f"{seen.kills} kills of {seen.runs} runs: {dict(seen.moments)}; left were {dict(seen.left)}")
    return seen


SEEDS = {2: 13, 10: 1}
"""How many kills, and the seed of their moments: 13 begins inside a save and between a journal's line and its step."""


@pytest.mark.parametrize("kills", [pytest.param(2, marks=pytest.mark.ci), pytest.param(10, marks=pytest.mark.deep)])
def test_some_kills(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, kills: int) -> None:
    seen = kill_often(command(checkpoint_folder, corpus, span_file), tmp_path, kills=kills, each=5, seed=SEEDS[kills])
    assert seen.kills == kills
