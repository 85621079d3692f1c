"""How the peak memory of `atdp detect` and `atdp redact` grows with the corpus.

    python -m tests.benchmarks.memory --json

Each command runs on its own over a small and a large corpus, made of WikiText-2 train as often as is needed; copies
after the first differ in every line, so the store cannot help. The peak is that of the process and of each of its
children, resident. The growth is the difference over that of the sizes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

WIKITEXT = Path(__file__).parents[3] / "shared" / "data" / "wikitext-2-raw" / "train.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", type=Path, default=WIKITEXT, help="a text file")
    parser.add_argument("--megabytes", type=int, nargs=2, default=[3, 30], help="sizes to detect in")
    parser.add_argument("--spans-megabytes", type=int, nargs=2, default=[3, 30], help="sizes to redact with spans")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the detector")
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        sys.exit(f"There is no file {arguments.data}; name another with --data.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = ["--set", f"run.workers={arguments.jobs}", "-q"]
        result: dict[str, dict[str, float]] = {}
        peaks: dict[str, list[float]] = {"detect": [], "redact from the store": [], "redact --spans": []}
        for size in arguments.megabytes:
            corpus = made(arguments.data, size, folder)
            peaks["detect"].append(peak(["detect", corpus, "-o", folder / f"{size}.jsonl", *jobs]))
            peaks["redact from the store"].append(peak(["redact", corpus, "-o", folder / f"{size}.out.txt", *jobs]))
        for size in arguments.spans_megabytes:
            corpus, spans = made(arguments.data, size, folder), folder / "spans.jsonl"
            spanned(corpus, spans)
            command = ["redact", corpus, "-o", folder / f"{size}.spans.txt", "--spans", spans, "-q"]
            peaks["redact --spans"].append(peak(command))
        for task, (small, large) in peaks.items():
            sizes = arguments.spans_megabytes if task == "redact --spans" else arguments.megabytes
            growth = (large - small) / (sizes[1] - sizes[0])
            result[task] = {
                f"peak MB at {size} MB": round(megabytes, 1)
                for size, megabytes in zip(sizes, (small, large), strict=True)
            }
            result[task]["growth MB per MB"] = round(growth, 3)
    lines = "".join(f"{task:<24}{figures}\n" for task, figures in result.items())
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else lines)


def made(source: Path, megabytes: int, folder: Path) -> Path:
    """A text file of about this size."""
    path, left, copy = folder / f"{megabytes}.txt", megabytes * 1_000_000, 0
    with path.open("wb") as target:
        while left > 0:
            with source.open("rb") as lines:
                for line in lines:
                    if left <= 0 or not line.strip():
                        continue
                    left -= target.write(line if copy == 0 else line.rstrip() + f" {copy}\n".encode())
            copy += 1
    return path


def spanned(corpus: Path, target: Path) -> None:
    """A spans file that flags the first two characters of each line."""
    with corpus.open("rb") as lines, target.open("w") as stream:
        for number, _ in enumerate(lines, start=1):
            span = {"start": 0, "end": 2, "label": "PERSON", "source": "file"}
            stream.write(json.dumps({"id": str(number), "spans": [span]}) + "\n")


def peak(command: list[object]) -> float:
    """The largest resident memory of a command's processes, in megabytes."""
    script = (
        "import resource, sys; from atdp_cli.cli.app import run; code = run(sys.argv[1:]); "
        "print(max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, command)], check=True, stdout=subprocess.PIPE, text=True
    )
    # Linux counts in kibibytes, macOS in bytes.
    return int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024) / 1e6


if __name__ == "__main__":
    main()
