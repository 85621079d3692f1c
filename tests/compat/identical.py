"""Whether two commits train the same weights, write the same ledgers and audit to the same figures, bit by bit.

    python -m tests.compat.identical OLD [NEW]

OLD and NEW are commits; without NEW it is the working tree as it is. Seven runs of `atdp harden --insecure-seed` are
made by both, each in a process of its own, on one thread of the CPU, with the same model, corpus and canaries. These
are made once: the models by transformers, the canaries by OLD's plant-canary, and by its detect the spans of the run
that is given some. A table tells what is the same, and the exit code is 1 where anything differs, 0 where nothing does.

Compared are:

- weights: the SHA-256 of all safetensors files of OUT. Where they differ it also says how far at most;
- ledger: privacy_ledger.json without `created` (the time), `software` (versions), `run`, there and in each event (a
  name drawn at random for each run), and `digest` (of all of these). Its seal of the weights is compared;
- audit: all that `audit-canary --json` says, and the held-out perplexities of OUT.private before, after and after each
  epoch. An encoder-decoder model cannot be audited, so it has its perplexities alone. Neither holds a time; both sides
  call their folders the same, so nothing needs to be left out.

Left out are the reports' times and hardware, which differ between any two runs, and their words, which the tests of
transcripts and schemas keep.

Floating-point sums are the same bit by bit only with the same libraries on the same kind of processor, so both sides
are run here and now, and nothing is compared with a recorded hash. OLD compared with itself must be the same.
"""

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from tests.compat.checkouts import atdp, check_imported, checkout, name_of
from tests.compat.figures import differences
from tests.compat.inputs import made_up, write_corpus, write_gpt2, write_pairs, write_t5

INPUTS = Path("..") / "inputs"
"""As a run names it, whose working folder is one beside it."""

JUDGED = (0, 1, 4)
"""Exit codes of an audit that came to its end."""

PARTS = ("weights", "ledger", "audit")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of `atdp harden`.

    Attributes:
        pairs: Of the encoder-decoder model on pairs; otherwise of the GPT-2 on lines with canaries.
    """

    name: str
    options: str
    pairs: bool = False
    processes: int = 1


RUNS = (
    Run(name="atdp", options="--recipe atdp --prior public"),
    Run(name="given-spans", options="--recipe atdp --prior public --spans ../inputs/spans.jsonl"),
    Run(name="fitted-decoys", options="--recipe fitted-decoys --tier high-entity"),
    Run(name="redacted+dp-sgd", options="--recipe redacted+dp-sgd --tier high-entity"),
    Run(name="lora", options="--recipe atdp --lora-rank 2 --learning-rate 1e-2"),
    Run(name="t5", options="--recipe atdp --source-field source --text-field target", pairs=True),
    Run(name="two-processes", options="--recipe atdp", processes=2),
)

ALIKE = "--epochs 2 --insecure-seed 1 --threads 1 --device cpu --no-store -q"

AUDIT = "--manifest ../inputs/canaries.json --reference ../inputs/gpt2 --threads 1 --json -q"


def write_inputs(folder: Path, root: Path) -> None:
    """The models and corpora of all runs, the canaries planted by the checkout at `root`."""
    folder.mkdir()
    lines = made_up(120)
    write_corpus(folder / "corpus.txt", lines)
    write_pairs(folder / "pairs.jsonl", lines)
    write_gpt2(folder / "gpt2", lines, width=16)
    write_t5(folder / "t5", lines)
    plant = "plant-canary corpus.txt -o planted.txt --manifest canaries.json --tokenizer gpt2 --count 5 --repeats 6"
    atdp(root, [*plant.split(), "--template", "My code is {digits:3}"], folder)
    atdp(root, ["detect", "planted.txt", "--tier", "high-contextual", "-o", "spans.jsonl"], folder)


def results(run: Run, root: Path, place: Path) -> dict[str, Any]:
    """What a run of the checkout at `root` leaves in the folder `place`, as it is compared."""
    model, corpus = ("t5", "pairs.jsonl") if run.pairs else ("gpt2", "planted.txt")
    manifest = [] if run.pairs else ["--manifest", INPUTS / "canaries.json"]
    data = ["harden", INPUTS / model, "--data", INPUTS / corpus, *manifest, "-o", run.name]
    atdp(root, [*data, *run.options.split(), *ALIKE.split()], place, processes=run.processes)
    out = place / run.name
    report = _read(place / f"{run.name}.private" / "privacy_report.json")
    audit = None if run.pairs else atdp(root, ["audit-canary", run.name, *AUDIT.split()], place, accepted=JUDGED)
    return {
        "weights": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(out.glob("*.safetensors"))
        },
        "ledger": spent(_read(out / "privacy_ledger.json")),
        "audit": {
            "audit-canary": audit and json.loads(audit),
            "perplexity": report["perplexity"],
            "epochs": [stage["perplexities"] for stage in report["stages"]],
        },
    }


def spent(ledger: dict[str, Any]) -> dict[str, Any]:
    """A ledger without what names a time, a version or the run."""
    left_out = {"created", "software", "run", "digest"}
    kept = {name: value for name, value in ledger.items() if name not in left_out}
    events = [{name: value for name, value in event.items() if name not in left_out} for event in ledger["events"]]
    return kept | {"events": events}


def compare(old: Path, new: Path, folder: Path) -> bool:
    """Make all runs by both checkouts and print the table; whether everything is the same."""
    write_inputs(folder / "inputs", old)
    sides = ((old, folder / "old"), (new, folder / "new"))
    for root, place in sides:
        place.mkdir()
        check_imported(root, place)
    print(_row("run", *PARTS))
    reported: list[str] = []
    with ThreadPoolExecutor(len(sides)) as pool:
        for run in RUNS:
            before, after = pool.map(lambda side, run=run: results(run, *side), sides)
            if not before["weights"]:
                raise SystemExit(f"{run.name} wrote no weights.")
            actual = {part: _both_ways(before[part], after[part]) for part in PARTS}
            print(_row(run.name, *("DIFFERENT" if actual[part] else "same" for part in PARTS)), flush=True)
            reported += [f"{run.name}, {part}{difference}" for part in PARTS for difference in actual[part][:3]]
            if actual["weights"]:
                furthest = largest_difference(*(place / run.name for _, place in sides))
                reported.append(f"{run.name}, weights: parameters differ by at most {furthest:.1e}")
    print("".join(f"\n{line}" for line in reported))
    return not reported


def largest_difference(before: Path, after: Path) -> float:
    """Of any parameter of two folders' safetensors files; infinite where they have other names or shapes."""
    sides = [
        {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}
        for folder in (before, after)
    ]
    shapes = [{name: tensor.shape for name, tensor in tensors.items()} for tensors in sides]
    if shapes[0] != shapes[1]:
        return math.inf
    return max(float((tensor.double() - sides[1][name].double()).abs().max()) for name, tensor in sides[0].items())


def _both_ways(before: Any, after: Any) -> list[str]:
    """Differences, keys that only one side has among them."""
    if before == after:
        return []
    return differences(before, after) or differences(after, before)


def _row(name: str, *cells: str) -> str:
    return f"{name:<16}" + "".join(f"{cell:<11}" for cell in cells).rstrip()


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> int:
    """The program; its exit code."""
    if not 1 <= len(arguments) <= 2 or any(argument.startswith("-") for argument in arguments):
        raise SystemExit("usage: python -m tests.compat.identical OLD [NEW]")
    with (
        checkout(arguments[0]) as old,
        checkout(arguments[1] if len(arguments) == 2 else None) as new,
        tempfile.TemporaryDirectory(prefix="atdp-") as folder,
    ):
        print(f"{name_of(old)} and {name_of(new)}")
        return 0 if compare(old, new, Path(folder).resolve()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
