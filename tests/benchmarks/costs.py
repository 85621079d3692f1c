"""Processor seconds of a plain epoch, with few records a step or many, and of one of DP-SGD, over those of `no-dp`.

    python -m tests.benchmarks.costs --json

On the quickstart's checkpoint and corpus, one thread, in rounds; detection, loading and saving are left out. `jft` is
what follows for three epochs on redacted text and thirty of DP-SGD, over three of `no-dp`.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

import torch

from atdp_cli.events import ignore
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.training.clipping.select import select_engine
from atdp_cli.training.loop import run_plain
from atdp_cli.training.recipe import DP_SGD, NO_DP
from examples.experiments.systems import system_of
from tests.benchmarks import stages
from tests.training.stages import stage_run

RECORDS, BATCHES = 1880, (16, 8, 4)
"""As many records as the sweep trains on, and how many of them a plain step takes: `no-dp` the first."""

PLAIN_EPOCHS, PRIVATE_EPOCHS = 3, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=RECORDS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = load_checkpoint(stages.QUICKSTART[0])
    model, corpus = checkpoint.model, stages.QUICKSTART[1]
    read = {recipe: stages.examples(checkpoint, corpus, arguments.records, recipe) for recipe in (NO_DP, DP_SGD)}
    engine = select_engine(model, "auto", ignore).run

    def plain(batch: int) -> None:
        recipe = system_of("no-dp", [f"no-dp.batch-size={batch}"]).steps[0].recipe
        plan = stages.plan(recipe, arguments.records)
        run_plain(stage_run(model, plan, examples=read[NO_DP]))

    def private() -> None:
        with tempfile.TemporaryFile("w") as journal:
            plan = stages.plan(DP_SGD, arguments.records)
            stages.private_epoch(checkpoint, read[DP_SGD], plan, engine, journal, notify=ignore)

    work: dict[str, Callable[[], None]] = {f"{size} records a step": partial(plain, size) for size in BATCHES}
    work["dp-sgd"] = private
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(arguments.rounds):
        for name, act in work.items():
            taken[name].append(seconds(act))
    base = taken[f"{BATCHES[0]} records a step"]
    ratios = {
        name: statistics.median(a / b for a, b in zip(values, base, strict=True)) for name, values in taken.items()
    }
    ratios["jft"] = 1 + ratios["dp-sgd"] * PRIVATE_EPOCHS / PLAIN_EPOCHS
    answer = {
        "records": arguments.records,
        "rounds": arguments.rounds,
        "seconds": {name: [round(spent, 1) for spent in values] for name, values in taken.items()},
        "over_no_dp": {name: round(value, 2) for name, value in ratios.items()},
    }
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


def seconds(act: Callable[[], None]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


if __name__ == "__main__":
    main()
