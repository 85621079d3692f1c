"""What `harden` leaves out, beside what it does: torch.compile and activation checkpointing.

    python -m tests.benchmarks.untaken --json

The gradient of a plain step (autograd) and the clipped sum of a private one (bookkeeping), also with LoRA of rank 8: of
GPT-2 with 12 layers of width 256 and 8 records of --length tokens. `as it is` has all records in one physical batch,
`quarter` a fourth of their tokens at a time, as a smaller memory budget would. `compiled` compiles the model's forward
pass for any shape, `checkpointing` keeps no activations inside a block. Every case runs in a process of its own, all of
them in each of --rounds rounds in an order of its own; of the rounds' ratios the median counts. Memory is the largest
resident size less the one before the model was built, on a GPU the most that was allocated. `norms` is how far the
records' norms are from those of `as it is`, relative.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peft
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from atdp_cli.training.clipping import bookkeeping, loop
from atdp_cli.training.gradients import gradient_sum
from tests.benchmarks.clipping import make_records, resident

KINDS = ("plain", "private", "private LoRA")
WAYS = ("as it is", "quarter", "compiled", "checkpointing")
RECORDS, VOCABULARY, CLIP = 8, 8192, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--length", type=int, default=512, help="tokens of a record")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="after the first, in each process")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "WAY"), help="run one case and print it")
    arguments = parser.parse_args()
    if arguments.one:
        kind, way = arguments.one
        sys.stdout.write(json.dumps(one(kind, way, arguments)) + "\n")
        return
    cases = measure(arguments)
    told = {name: getattr(arguments, name) for name in ("device", "length", "rounds", "steps")}
    sys.stdout.write(
        json.dumps(told | {"load": os.getloadavg()[0], "cases": cases}) + "\n" if arguments.json else table(cases)
    )


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Ratios of every case to that of the same kind as it is."""
    order, pairs = random.Random(0), [(kind, way) for kind in KINDS for way in WAYS]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {pair: [] for pair in pairs}
    for _ in range(arguments.rounds):
        for pair in order.sample(pairs, len(pairs)):
            found[pair].append(in_a_process(pair, arguments))
    return [ratios(pair, found[pair], found[pair[0], WAYS[0]]) for pair in pairs]


def in_a_process(pair: tuple[str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    told = [f"--{name}={getattr(arguments, name)}" for name in ("device", "length", "steps")]
    command = [sys.executable, "-m", "tests.benchmarks.untaken", *told, "--one", *pair]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[2])
    return dict(json.loads(done.stdout))


def ratios(pair: tuple[str, str], rounds: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, Any]:
    def median(what: str) -> float:
        found: float = statistics.median(own[what] / other[what] for own, other in zip(rounds, plain, strict=True))
        return round(found, 3)

    norms = np.array(rounds[0]["norms"]) / np.array(plain[0]["norms"])
    return {
        "kind": pair[0],
        "way": pair[1],
        "seconds": median("seconds"),
        "bytes": median("bytes"),
        "seconds_first": round(statistics.median(own["first"] for own in rounds), 2),
        "seconds_later": round(statistics.median(own["seconds"] for own in rounds), 3),
        "norms": float(np.abs(norms - 1).max()),
    }


def one(kind: str, way: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One case in this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    before = resident("VmRSS")
    model = make_model(kind, way, arguments)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (RECORDS, arguments.length))
    records = make_records(torch.from_numpy(ids))
    tokens = RECORDS * arguments.length // (4 if way == "quarter" else 1)
    private = partial(bookkeeping.clipped_sum, model, records, CLIP, tokens=tokens, positions=True)
    step = partial(gradient_sum, model, records, tokens=tokens) if kind == "plain" else private
    taken = [clocked(step, arguments.device) for _ in range(1 + arguments.steps)]
    largest = torch.cuda.max_memory_allocated() if arguments.device == "cuda" else resident("VmHWM") - before
    norms = (loop.clipped_sum(model, records, CLIP) if kind == "plain" else private()).norms
    return {"first": taken[0], "seconds": statistics.median(taken[1:]), "bytes": largest, "norms": norms.tolist()}


def clocked(step: Callable[[], object], device: str) -> float:
    started = time.perf_counter()
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def make_model(kind: str, way: str, arguments: argparse.Namespace) -> Any:
    torch.manual_seed(0)
    shape = {"n_embd": 256, "n_layer": 12, "n_head": 4, "n_positions": arguments.length}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0, **shape, **dropout)
    model: Any = GPT2LMHeadModel(config).to(arguments.device).eval()
    if kind == "private LoRA":
        targets = ["c_attn", "c_proj", "c_fc"]
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=targets, fan_in_fan_out=True)).eval()
    if way == "compiled":
        vars(model)["forward"] = torch.compile(model.forward, dynamic=True)
    if way == "checkpointing":
        # transformers checkpoints in training mode alone; without dropout nothing else differs.
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
    return model


def table(cases: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ["| | time | memory | first step | norms |", "|---|---|---|---|---|"]
    for case in cases:
        told = (
            f"{case['seconds']:.2f}",
            f"{case['bytes']:.2f}",
            f"{case['seconds_first']:.1f} s",
            f"{case['norms']:.0e}",
        )
        lines.append(f"| {case['kind']}, {case['way']} | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
