"""Seconds of a private stage over those of a plain one, on the quickstart, in one process.

    python -m tests.benchmarks.stages --json

Both read the same first records once; detection, loading and saving are left out.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from atdp_cli.events import ignore
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.model.windows import Marks, encode_windows
from atdp_cli.privacy.csprng import secure_stream
from atdp_cli.text.records import read_records
from atdp_cli.training.clipping.loop import clipped_sum
from atdp_cli.training.objective import Example, make_example
from atdp_cli.training.plan import Corpus, StagePlan, make_plan
from atdp_cli.training.recipe import ATDP, NO_DP, Recipe
from atdp_cli.training.stage import Randomness, run_plain, run_private

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
RECORDS = 256
UNMEASURED = Perplexity(all=None, sensitive=None, other=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = load_checkpoint(QUICKSTART / "checkpoint")
    plain, private = [], []
    with tempfile.TemporaryFile("w") as journal:
        for _ in range(arguments.rounds):
            plain.append(seconds(checkpoint, NO_DP, journal))
            private.append(seconds(checkpoint, ATDP, journal))
    ratios = [slow / fast for slow, fast in zip(private, plain, strict=True)]
    result = {"records": RECORDS, "rounds": arguments.rounds, "atdp_loop_over_no_dp": statistics.median(ratios)}
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else f"{result}\n")


def seconds(checkpoint: Checkpoint, recipe: Recipe, journal: TextIO) -> float:
    """One epoch of a recipe's only stage."""
    stage = plan(recipe)
    examples = read(checkpoint, stage)
    started = time.perf_counter()
    if stage.sampling_rate is None:
        run_plain(checkpoint.model, examples, stage, held_out=lambda: UNMEASURED, notify=ignore)
    else:
        run_private(
            checkpoint.model,
            examples,
            stage,
            engine=clipped_sum,
            randomness=Randomness(sample=secure_stream(), noise=secure_stream()),
            journal=journal,
            held_out=lambda: UNMEASURED,
            notify=ignore,
        )
    return time.perf_counter() - started


def plan(recipe: Recipe) -> StagePlan:
    """One epoch over the records."""
    once = tuple(replace(stage, epochs=1) for stage in recipe)
    corpus = Corpus(records=RECORDS, unit="line", masks="movable")
    return make_plan(once, corpus, delta=1e-6, prior="public").stages[0]


def read(checkpoint: Checkpoint, stage: StagePlan) -> list[Example]:
    """The first records, none of their tokens flagged."""
    found = []
    for record, _ in zip(read_records(QUICKSTART / "corpus.txt"), range(RECORDS), strict=False):
        windows = encode_windows(checkpoint.tokenizer, 0, record.text, Marks(), context=256, max_windows=1)
        found.append(make_example(windows, stage.stage.objective))
    return found


if __name__ == "__main__":
    main()
