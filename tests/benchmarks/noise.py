"""Uniforms of the key stream, and normals made of them, a second on one thread of the processor.

    python -m tests.benchmarks.noise --json

Drawn as the engine draws them, a block at a time. With --device cuda the normals are made there, in its larger blocks,
and counted once they are.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

from atdp_cli.model.device import block_size
from atdp_cli.privacy.rng import secure_stream
from atdp_cli.training.noise import BLOCK, normals

NUMBERS = 1 << 24
"""In a round."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stream, device = secure_stream(), torch.device(arguments.device)
    answer = {
        "device": device.type,
        "uniforms_per_second": round(pace(stream.uniforms, BLOCK, device, arguments.rounds)),
        "normals_per_second": round(
            pace(lambda count: normals(stream, count, device), block_size(device, BLOCK), device, arguments.rounds)
        ),
    }
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


def pace(draw: Callable[[int], object], block: int, device: torch.device, rounds: int) -> float:
    """The median over the rounds, after one that does not count."""
    found = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        for _ in range(NUMBERS // block):
            draw(block)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if number:
            found.append(NUMBERS / (time.perf_counter() - started))
    return statistics.median(found)


if __name__ == "__main__":
    main()
