"""The learning rate that `--tune` finds beside the best of a grid of seven, on checkpoints and corpora of ../shared.

    python -m tests.benchmarks.tuning --json

For each pair of a checkpoint and a corpus: one run of the default recipe with --tune, and one for each learning rate of
a grid with all else alike: the warm-up, and the best epoch. Held-out perplexity is that of text with decoys, of
unflagged tokens of the text as it is, and of all its tokens. `over_best` is that of the first run over the lowest of
the grid; `by_width` that of the learning rate which the model's width alone gives, which is what --tune none takes.
Held out is every twentieth record.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.stages import QUICKSTART, ROOT, SHARED, STORIES


def texts() -> dict[str, Iterator[str]]:
    """The lines of each corpus."""
    data = SHARED / "data"
    return {
        "abcd": text_lines(data / "abcd" / "valid.txt"),
        "wikitext": text_lines(data / "wikitext-2-raw" / "valid.txt"),
        "wnut": _sentences(data / "wnut17" / "wnut17train.conll"),
    }


def text_lines(path: Path) -> Iterator[str]:
    """Lines of more than three words."""
    return (line.strip() for line in path.read_text(encoding="utf-8").splitlines() if len(line.split()) > 3)


def _sentences(path: Path) -> Iterator[str]:
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    sentences = (" ".join(row.split("\t")[0] for row in block.splitlines() if row.strip()) for block in blocks)
    return (sentence for sentence in sentences if len(sentence.split()) > 3)


KINDS = ("decoyed", "unflagged", "raw")
GRID = tuple(2.0**power for power in range(-4, 3))
PAIRS = (("stories", "wikitext"), ("stories", "wnut"), ("quickstart", "wikitext"), ("quickstart", "wnut"))
MODELS = {"stories": STORIES[0], "quickstart": QUICKSTART[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--characters", type=int, default=300, help="of a record; the rest of a line is left out")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tune", default="quick", choices=("quick", "full"))
    parser.add_argument(
        "--pairs", nargs="+", metavar="MODEL+CORPUS", help=f"default: {', '.join(map('+'.join, PAIRS))}"
    )
    arguments = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit("The checkpoints and corpora of ../shared are absent.")
    pairs = [tuple(pair.split("+")) for pair in arguments.pairs] if arguments.pairs else PAIRS
    measured = []
    for model, corpus in pairs:
        measured.append(measure(model, corpus, arguments))
        sys.stderr.write(f"{json.dumps(measured[-1])}\n")
    settings = {name: getattr(arguments, name) for name in ("records", "characters", "epochs", "tune")}
    if arguments.json:
        sys.stdout.write(json.dumps(settings | {"load": os.getloadavg()[0], "pairs": measured}) + "\n")


def measure(model: str, corpus: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One pair: perplexities of the tuned run, of the grid, and of the learning rate by width."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            line[: arguments.characters] for _, line in zip(range(arguments.records), texts()[corpus], strict=False)
        ]
        data = folder / "corpus.txt"
        data.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        common = [
            "harden",
            str(MODELS[model]),
            "--data",
            str(data),
            "--checkpoint-history",
            "public",
            "-q",
            "--set",
            "run.threads=1",
        ]
        common += ["--epochs", str(arguments.epochs), "--set", "run.insecure-seed=1"]
        tuned = hardened(folder / "tuned", [*common, "--tune", arguments.tune])
        entry = tuned["public"]["stages"][-1]["tuned"]
        if entry is None:
            sys.exit(f"{model}+{corpus}: too few records for a search.")
        by_width = planned_rate(common)
        grid = {}
        for factor in GRID:
            rate = float(f"{by_width * factor:.3g}")
            fixed = [*common, "--tune", arguments.tune, "--learning-rate", str(rate)]
            grid[rate] = after(hardened(folder / f"grid-{rate:g}", fixed))
    best = {kind: min(figures[kind] for figures in grid.values()) for kind in KINDS}

    def over_best(figures: dict[str, float]) -> dict[str, float]:
        return {kind: round(figures[kind] / best[kind], 3) for kind in KINDS}

    return {
        "pair": f"{model}+{corpus}",
        "records": len(lines),
        "tuned": entry,
        "perplexity": after(tuned),
        "grid": {f"{rate:g}": figures for rate, figures in grid.items()},
        "over_best": over_best(after(tuned)),
        "by_width": over_best(grid[by_width]),
        "seconds": {"tuned": round(tuned["seconds"], 1)},
    }


def planned_rate(common: list[str]) -> float:
    """η by the model's width, as the plan without a search has it."""
    plan = json.loads(atdp([*common, "--tune", "none", "--dry-run", "--json"]))
    return float(plan["stages"][-1]["optimizer"].split("learning rate ")[1].split()[0].rstrip(","))


def hardened(out: Path, line: list[str]) -> Any:
    """The private report of a run; None where it diverged."""
    done = subprocess.run(command([*line, "-o", str(out)]), cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        return None
    return json.loads((out.with_name(f"{out.name}.private") / "privacy_report.json").read_text(encoding="utf-8"))


def after(report: Any) -> dict[str, float]:
    """Held-out perplexity of the model as it was written, by `KINDS`."""
    if report is None:
        return dict.fromkeys(KINDS, float("inf"))
    raw, decoyed = report["perplexity"]["after"], report["decoyed_perplexity"]["after"]
    measured = {"decoyed": decoyed["all"], "unflagged": raw["other"], "raw": raw["all"]}
    return {kind: round(float(value), 3) for kind, value in measured.items()}


def command(line: list[str]) -> list[str]:
    return [sys.executable, "-m", "atdp_cli", *line]


def atdp(line: list[str]) -> str:
    return subprocess.run(command(line), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
