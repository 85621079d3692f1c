"""Seconds of `atdp account` on a typical ledger, and of every figure for 10,000 steps with 300 noise multipliers.

    python -m tests.benchmarks.accounting --json

The command is timed as a process, from start to end, the median of a few; `cpu` is what it computed, which a machine
that does other things leaves alone.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from atdp_cli.privacy.accountant import epsilons, grid_for
from atdp_cli.privacy.ledger import Ledger, SubsampledGaussian, write_ledger
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.schedule import RiseReset, sigma_sequence

DELTA = 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    result = {
        "typical_ledger": command_seconds(typical(), arguments.rounds),
        "noise_in_the_hundreds": command_seconds(typical(noise=50.0), arguments.rounds),
        "10000_steps_300_sigmas": figure_seconds(events(300, steps=10_000)),
    }
    lines = "".join(f"{name:<24}{value}\n" for name, value in result.items())
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else lines)


def events(sigmas: int, *, steps: int, noise: float = 1.0) -> tuple[SubsampledGaussian, ...]:
    """Steps with q = 0.01 over epochs whose σ rises and resets, each σ another one."""
    sequence = sigma_sequence(RiseReset(noise_multiplier=noise, jitter=(0.9, 1.1)), sigmas, position=0)
    # After a reset σ is σ₀ again; a millionth apart, every epoch is a run of its own.
    each = [sigma * (1 + 1e-6 * place) for place, sigma in enumerate(sequence)]
    counts = [steps // sigmas + (place < steps % sigmas) for place in range(sigmas)]
    return tuple(
        SubsampledGaussian(
            stage="atdp",
            sampling_rate=0.01,
            noise_multiplier=sigma,
            clip_norm=0.1,
            steps=count,
            relation=hypothetical(),
        )
        for sigma, count in zip(each, counts, strict=True)
    )


def typical(noise: float = 1.0) -> Ledger:
    """Ten epochs of 100 steps."""
    spent = events(10, steps=1000, noise=noise)
    return Ledger(
        unit="line", checkpoint_history="unknown", records=25_600, delta=DELTA, grid=grid_for(spent), events=spent
    )


def command_seconds(ledger: Ledger, rounds: int) -> dict[str, float]:
    """`atdp account LEDGER`, as people start it."""
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "privacy_ledger.json"
        write_ledger(path, ledger)
        command = [sys.executable, "-m", "atdp_cli", "account", str(path), "--json"]
        for _ in range(rounds):
            before, started = _children(), time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            wall.append(time.perf_counter() - started)
            cpu.append(_children() - before)
    return {"wall": round(statistics.median(wall), 2), "cpu": round(statistics.median(cpu), 2)}


def figure_seconds(spent: tuple[SubsampledGaussian, ...]) -> dict[str, float]:
    """All accountants in this process, libraries loaded."""
    epsilons(spent[:1], DELTA, grid=1e-3)
    started, computed = time.perf_counter(), time.process_time()
    epsilons(spent, DELTA, grid=grid_for(spent))
    return {
        "wall": round(time.perf_counter() - started, 2),
        "cpu": round(time.process_time() - computed, 2),
    }


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
