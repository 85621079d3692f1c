"""How the time and memory of a private step grow with parameters, tokens in a step, and the length of a record.

    python -m tests.benchmarks.scaling --json

A Llama of four layers with random weights, records of random tokens, a vocabulary of 8,192, the engine `ghost` at
C = 0.1 with noise and AdamW, on one thread. One thing grows at a time; each point has a process of its own. Seconds
are the median of the steps after the first; memory is what the process took at most beyond what it had before the model
was built. `slope` is that of a straight line through the logarithms: 1 where twice as much takes twice as long.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from atdp_cli.training.clip.batches import default_tokens
from tests.benchmarks.clipping import our_engine, ours, resident

VOCABULARY, HEADS, LAYERS = 8192, 4, 4


@dataclass(frozen=True, kw_only=True)
class Point:
    """The model's width, records in a step and tokens of a record."""

    width: int = 128
    records: int = 16
    length: int = 128


BASE = Point()
CURVES: dict[str, tuple[Point, ...]] = {
    "parameters": tuple(replace(BASE, width=width) for width in (64, 128, 256, 512, 1024)),
    "tokens in a step": tuple(replace(BASE, records=records) for records in (4, 8, 16, 32, 64)),
    # As many tokens in each step.
    "tokens in a record": tuple(
        replace(BASE, records=BASE.records * BASE.length // length, length=length)
        for length in (32, 64, 128, 512, 2048)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--curve", action="append", choices=list(CURVES), help="only this one")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        sys.stdout.write(json.dumps(measured(Point(**json.loads(arguments.point)), arguments.steps)) + "\n")
        return
    answer = {name: curve(name, arguments.steps) for name in arguments.curve or CURVES}
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else "".join(map(table, answer.items())))


def curve(name: str, steps: int) -> dict[str, Any]:
    found = [apart(point, steps) for point in CURVES[name]]
    along = [x_of(name, figures) for figures in found]
    return {
        "points": found,
        "slope_seconds": slope(along, [figures["seconds"] for figures in found]),
        "slope_bytes": slope(along, [figures["bytes"] for figures in found]),
    }


def x_of(name: str, figures: dict[str, Any]) -> float:
    """What grows along a curve."""
    given = {"parameters": figures["parameters"], "tokens in a record": figures["length"]}
    return float(given.get(name, figures["records"] * figures["length"]))


def slope(along: Sequence[float], values: Sequence[float]) -> float:
    return round(statistics.linear_regression([math.log(x) for x in along], [math.log(y) for y in values]).slope, 2)


def apart(point: Point, steps: int) -> dict[str, Any]:
    """The point, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.scaling", "--steps", str(steps)]
    command += ["--point", json.dumps(asdict(point))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return dict(json.loads(done.stdout))


def measured(point: Point, steps: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = resident("VmRSS")
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=point.width,
        intermediate_size=3 * point.width,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=point.length,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, VOCABULARY, (point.records, point.length))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    step = ours(model, optimizer, ids, our_engine("ghost", default_tokens(model)))
    took = []
    for _ in range(steps + 1):
        started = time.perf_counter()
        step()
        took.append(time.perf_counter() - started)
    return asdict(point) | {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": round(statistics.median(took[1:]), 4),
        "bytes": resident("VmHWM") - before,
    }


def table(named: tuple[str, dict[str, Any]]) -> str:
    """Markdown."""
    name, found = named
    lines = [f"| {name} | seconds a step | MB |", "|---|---|---|"]
    for figures in found["points"]:
        lines.append(f"| {x_of(name, figures):,.0f} | {figures['seconds']:.2f} | {figures['bytes'] / 1e6:,.0f} |")
    lines.append(f"| slope | {found['slope_seconds']:.2f} | {found['slope_bytes']:.2f} |")
    return "\n".join(lines) + "\n\n"


if __name__ == "__main__":
    main()
