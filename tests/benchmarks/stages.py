"""Tokens a second of a private stage over those of a plain one, on the same records, in one process.

    python -m tests.benchmarks.stages --json

On the quickstart's checkpoint and corpus; with --shared on a 15M checkpoint and 1,000 records of customer chats. Each
round runs one epoch of `no-dp` and one of `atdp` with each engine; detection, loading and saving are left out. The
private stage draws its records at random, so tokens are counted as they pass.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TextIO

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from atdp_cli.corpus.record import read_records
from atdp_cli.events import Event, Notify, StepDone, ignore
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.windows import Marks, encode_windows
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import secure_stream
from atdp_cli.training.clip.engine import ClippingEngine
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.objective import Example, make_example
from atdp_cli.training.options import ENGINES, ClippingEngineName
from atdp_cli.training.plan import CorpusFacts, StagePlan, make_plan
from atdp_cli.training.recipe import ATDP, NO_DP, Recipe
from atdp_cli.training.trainer import Randomness, run_plain, run_private
from tests.training.stages import stage_run, trained

ROOT = Path(__file__).parents[2]
QUICKSTART = (ROOT / "examples" / "quickstart" / "checkpoint", ROOT / "examples" / "quickstart" / "corpus.txt", 256)
SHARED = ROOT.parent / "shared"
STORIES = (SHARED / "models" / "stories15M", SHARED / "data" / "abcd" / "valid.txt", 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shared", action="store_true", help="the 15M checkpoint of ../shared")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["ghost", "per-record"])
    arguments = parser.parse_args()
    model, corpus, records = STORIES if arguments.shared else QUICKSTART
    if not corpus.is_file():
        sys.exit(f"There is no file {corpus}.")
    torch.set_num_threads(arguments.threads)
    checkpoint = load_checkpoint(model)
    found: dict[str, list[float]] = {name: [] for name in ("plain", *arguments.engines)}
    with tempfile.TemporaryFile("w") as journal:
        for _ in range(arguments.rounds):
            found["plain"].append(plain_pace(checkpoint, examples(checkpoint, corpus, records, NO_DP), records))
            for engine in arguments.engines:
                read = examples(checkpoint, corpus, records, ATDP)
                found[engine].append(private_pace(checkpoint, read, records, engine, journal))
    ratios = {
        engine: round(statistics.median(a / b for a, b in zip(found[engine], found["plain"], strict=True)), 3)
        for engine in arguments.engines
    }
    result = {"model": model.name, "records": records, "rounds": arguments.rounds, "threads": arguments.threads}
    paces = {name: round(statistics.median(values)) for name, values in found.items()}
    answer = {**result, "tokens_per_second": paces, "over_plain": ratios}
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


class Count:
    """A `notify` that adds up tokens."""

    def __init__(self) -> None:
        self.tokens = 0

    def __call__(self, event: Event) -> None:
        self.tokens += event.tokens if isinstance(event, StepDone) else 0


def plain_pace(checkpoint: Checkpoint, read: Sequence[Example], records: int) -> float:
    """Tokens a second of one epoch without protection."""
    count, started = Count(), time.perf_counter()
    run_plain(stage_run(checkpoint.model, plan(NO_DP, records), examples=read, notify=count))
    return count.tokens / (time.perf_counter() - started)


def private_pace(
    checkpoint: Checkpoint, read: Sequence[Example], records: int, engine: ClippingEngineName, journal: TextIO
) -> float:
    """Tokens a second of one private epoch."""
    chosen = select_engine(checkpoint.model, engine, ignore)
    count, started = Count(), time.perf_counter()
    private_epoch(checkpoint, read, plan(ATDP, records), chosen.run, journal, notify=count)
    return count.tokens / (time.perf_counter() - started)


def private_epoch(
    checkpoint: Checkpoint,
    read: Sequence[Example],
    planned: StagePlan,
    engine: ClippingEngine,
    journal: TextIO,
    *,
    notify: Notify,
) -> None:
    """The steps of a private plan, with fresh randomness."""
    run_private(
        stage_run(checkpoint.model, planned, examples=read, notify=notify),
        engine=engine,
        randomness=Randomness(sample=secure_stream(), noise=secure_stream()),
        journal=journal,
    )


def plan(recipe: Recipe, records: int) -> StagePlan:
    """One epoch over the records."""
    once = tuple(replace(stage, epochs=1) for stage in trained(recipe))
    corpus = CorpusFacts(records=records, relation=hypothetical("line", "high-contextual"))
    return make_plan(once, corpus, delta=1e-6, checkpoint_history="public").training[0]


def examples(checkpoint: Checkpoint, corpus: Path, records: int, recipe: Recipe) -> list[Example]:
    """The first records, none of their tokens flagged."""
    objective = trained(recipe)[0].objective
    windows = (
        encode_windows(checkpoint.tokenizer, 0, record.text, Marks(), context=256, max_windows=8)
        for record in islice(read_records(corpus), records)
    )
    return [make_example(window, objective) for window in windows]


if __name__ == "__main__":
    main()
