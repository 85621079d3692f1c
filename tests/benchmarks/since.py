"""What the other benchmarks of time and memory take and measure, over an earlier commit, in one run.

    python -m tests.benchmarks.since --json

Each benchmark that both commits have runs in turn at the earlier one and now, with settings that keep it short. A row
has the processor seconds and the peak memory of the whole benchmark, and every number that it prints at both commits.
Processor seconds hardly depend on other work on the machine; the numbers that a benchmark prints may. `first_word`
compares two commits by itself. Benchmarks of quality (`detection`, `tuning`, `memory_map` …) are not among them.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.compat.checkouts import ROOT, check_imported, checkout, environment

BEFORE = "63ad861"
BENCHMARKS = {
    "accounting": "--rounds 3",
    "clipping": "--rounds 2 --case 'V=8,192 B=32'",
    "costs": "--rounds 1 --records 400",
    "estimates": "--only quickstart",
    "exposure": "--rounds 1 --sample 128",
    "memory": "--megabytes 1 3 --spans-megabytes 1 3",
    "noise": "--rounds 3",
    "ranks": "--rounds 1",
    "scaling": "--steps 2 --curve parameters",
    "stages": "--rounds 1",
    "throughput": "--kilobytes 100 --rounds 1 --jobs 1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    arguments = parser.parse_args()
    shared = ROOT.parent / "shared"
    if not shared.is_dir():
        sys.exit(f"There is no folder {shared}.")
    rows = {}
    with checkout(arguments.before) as before:
        (before.parent / "shared").symlink_to(shared)
        check_imported(before, before)
        for name in arguments.only:
            rows[name] = compared(*(run(root, name) for root in (before, ROOT)))
            sys.stderr.write(f"{name}: {json.dumps(rows[name])}\n")
    if arguments.json:
        sys.stdout.write(json.dumps({"before": arguments.before, "load": os.getloadavg()[0], **rows}) + "\n")


def run(root: Path, name: str) -> dict[str, float]:
    """The numbers that a benchmark prints, its processor seconds and its peak memory."""
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", "--json", *shlex.split(BENCHMARKS[name])]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=root, env=environment(root), stdout=subprocess.PIPE, stderr=errors, text=True
        )
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            errors.seek(0)
            sys.exit(f"{name} at {root} ended with {os.waitstatus_to_exitcode(status)}:\n{errors.read()[-2000:]}")
    whole = {"processor_seconds": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}
    return whole | dict(numbers(json.loads(printed), ""))


def numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Every number in a JSON value, by its path."""
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(member, f"{path}.{key}".lstrip("."))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def compared(before: dict[str, float], now: dict[str, float]) -> dict[str, list[float]]:
    """Before, now, and now over before, of every number that both have."""
    return {
        name: [round(before[name], 4), round(now[name], 4), round(now[name] / before[name], 3) if before[name] else 0.0]
        for name in before
        if name in now
    }


if __name__ == "__main__":
    main()
