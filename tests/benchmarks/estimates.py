"""What `atdp harden --dry-run` tells of time and memory, over what the run then takes.

    python -m tests.benchmarks.estimates --json

Each case is asked for its plan and then run, in processes of their own. Told and taken seconds are those of the stages;
memory is the largest resident size of the run's process. The last case needs the checkpoint and corpus of ../shared,
and is left out, saying so, where they are absent.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.stages import QUICKSTART, STORIES

ROOT = Path(__file__).parents[2]


def cases() -> dict[str, list[str]]:
    """The command line of each case after `harden`."""
    quick, stories = (["harden", str(folder), "--data", str(corpus)] for folder, corpus, _ in (QUICKSTART, STORIES))
    paper, short = ["--recipe", "atdp"], ["--epochs", "2", "--max-records", "1000"]
    found = {
        "quickstart, atdp, 1 epoch": [*quick, *paper, "--epochs", "1", "--max-records", "1000"],
        "quickstart, --auto": [*quick, "--auto"],
        "quickstart, LoRA, rank 8, 2 epochs": [*quick, *paper, *short, "--lora-rank", "8"],
    }
    if STORIES[0].is_dir() and STORIES[1].is_file():
        found["stories15M, atdp, 1 epoch"] = [*stories, *paper, "--epochs", "1", "--max-records", "300"]
    else:
        sys.stderr.write("The checkpoint of ../shared is absent: its case is left out.\n")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", help="cases with this in their names")
    arguments = parser.parse_args()
    found = {}
    for name, line in cases().items():
        if (arguments.only or "") in name:
            found[name] = compared(line)
            sys.stderr.write(f"{name}: {found[name]}\n")
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")


def compared(line: list[str]) -> dict[str, Any]:
    told = json.loads(atdp([*line, "--dry-run", "--json", "-q"]))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        process = subprocess.Popen(command([*line, "-o", str(out), "-q"]), cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"The run ended with status {status}: {line}")
        report = json.loads((out.with_name("out.private") / "privacy_report.json").read_text())
    seconds = sum(stage["seconds"] for stage in report["stages"])
    peak = usage.ru_maxrss << 10
    return {
        "seconds_told": round(told["estimated_seconds"], 1),
        "seconds_taken": round(seconds, 1),
        "told_over_taken": round(told["estimated_seconds"] / seconds, 2),
        "bytes_told": told["estimated_bytes"],
        "bytes_taken": peak,
        "memory_told_over_taken": round(told["estimated_bytes"] / peak, 2),
    }


def command(line: list[str]) -> list[str]:
    return [sys.executable, "-m", "atdp_cli", *line]


def atdp(line: list[str]) -> str:
    return subprocess.run(command(line), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
