"""How long a command works before its first line and until its end, over the same of an earlier commit, in one run.

    python -m tests.benchmarks.first_word --json

Commands that people wait for: help, `account`, `report`, a run with a path that is wrong, and a dry run on stories15M
(../shared) with 1,000 lines of ABCD. Each is a process of its own; rounds alternate between the two versions, and the
least of the rounds counts. Seconds are those of the processor, so that other work counts for little, but for those
until the first line, which are by the clock. A command's peak memory is its largest resident size, read every 5 ms.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.compat.checkouts import ROOT, atdp, check_imported, checkout, command, environment
from tests.small import small_lines, write_checkpoint, write_corpus

SHARED = ROOT.parent / "shared"
BEFORE = "63ad861"
HARDENED = "harden model --data corpus.txt --recipe no-dp --epochs 1 --insecure-seed 1 -q -o hardened"
COMMANDS = {
    "help": "--help",
    "account": "account hardened",
    "report": "report hardened",
    "wrong path": "harden model --data absent.txt",
    "dry run": "harden {stories} --data abcd.txt --recipe atdp --dry-run",
}


class Cost(NamedTuple):
    """Of one process."""

    first_line: float
    processor: float
    peak_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"There is no folder {SHARED}.")
    with tempfile.TemporaryDirectory() as name, checkout(arguments.before) as before:
        place = Path(name)
        prepare(place)
        versions = {"before": before, "now": ROOT}
        for root in versions.values():
            check_imported(root, place)
        result = {title: compared(words, versions, place, arguments.rounds) for title, words in COMMANDS.items()}
    if arguments.json:
        sys.stdout.write(json.dumps({"before": arguments.before, **result}) + "\n")
        return
    for title, figures in result.items():
        sys.stdout.write(f"{title:<12}{figures}\n")


def prepare(place: Path) -> None:
    """A small model, hardened by this version; and the lines of ABCD."""
    write_corpus(place / "corpus.txt", small_lines())
    write_checkpoint(place / "model", small_lines())
    lines = (SHARED / "data" / "abcd" / "valid.txt").read_text(encoding="utf-8").splitlines()
    write_corpus(place / "abcd.txt", [line for line in lines if line.strip()][:1000])
    atdp(ROOT, HARDENED.split(), place)


def compared(words: str, versions: dict[str, Path], place: Path, rounds: int) -> dict[str, Any]:
    """The least costs of both versions, and their ratios."""
    line = words.format(stories=SHARED / "models" / "stories15M").split()
    costs: dict[str, list[Cost]] = {name: [] for name in versions}
    for _ in range(rounds):
        for name, root in versions.items():
            costs[name].append(run(root, line, place))
    least = {name: Cost(*(min(values) for values in zip(*found, strict=True))) for name, found in costs.items()}
    before, now = least["before"], least["now"]
    return {
        **{f"{name}_{field}": round(getattr(cost, field), 2) for name, cost in least.items() for field in Cost._fields},
        "ratio_first_line": round(now.first_line / before.first_line, 2),
        "ratio_processor": round(now.processor / before.processor, 2),
        "ratio_peak": round(now.peak_bytes / before.peak_bytes, 2),
    }


def run(root: Path, line: list[str], place: Path) -> Cost:
    """What a command of the checkout at `root` takes; what it writes to either stream counts as a line."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command(line), cwd=place, env=environment(root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    peaks = [0]
    watcher = threading.Thread(target=watch, args=(process.pid, peaks))
    watcher.start()
    process.stdout.readline()
    first = time.perf_counter() - began
    process.stdout.read()
    _, _, usage = os.wait4(process.pid, 0)
    watcher.join()
    return Cost(first_line=first, processor=usage.ru_utime + usage.ru_stime, peak_bytes=max(peaks))


def watch(process: int, peaks: list[int]) -> None:
    """Note the largest resident size of a process as long as it lives, bytes. A parent's would be in that of wait4."""
    status = Path(f"/proc/{process}/status")
    with contextlib.suppress(OSError):
        while lines := [line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:")]:
            peaks.append(1024 * int(lines[0].split()[1]))
            time.sleep(0.005)


if __name__ == "__main__":
    main()
