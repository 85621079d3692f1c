"""Steps of `atdp` by several processes over those by one, on one machine.

    python -m tests.benchmarks.ranks --json

Each round starts 1, 2, … processes in turn, which run the same private steps on the quickstart's checkpoint and
corpus; with --shared on a 15M checkpoint and records of customer chats. Loading is left out. With --shard-model each
process holds a part of every parameter.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from multiprocessing.queues import SimpleQueue
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from atdp_cli.events import ignore
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.parallel.fsdp import shard_model
from atdp_cli.training.parallel.ranks import Ranks, process_group
from atdp_cli.training.recipe import ATDP
from atdp_cli.training.trainer import Randomness, run_private
from tests.benchmarks.stages import QUICKSTART, STORIES, examples, plan
from tests.training.ranked import free_port
from tests.training.stages import stage_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shard-model", action="store_true")
    parser.add_argument("--shared", action="store_true", help="the 15M checkpoint of ../shared")
    arguments = parser.parse_args()
    seconds: dict[int, list[float]] = {size: [] for size in arguments.processes}
    for _ in range(arguments.rounds):
        for size in arguments.processes:
            sharded = arguments.shard_model and size > 1
            seconds[size].append(an_epoch(size, sharded=sharded, shared=arguments.shared))
    first = arguments.processes[0]
    speed = {
        size: round(statistics.median(a / b for a, b in zip(seconds[first], found, strict=True)), 2)
        for size, found in seconds.items()
    }
    answer = {
        "model": (STORIES if arguments.shared else QUICKSTART)[0].name,
        "sharded": arguments.shard_model,
        "rounds": arguments.rounds,
        "seconds": {size: round(statistics.median(found), 1) for size, found in seconds.items()},
        f"speed_over_{first}": speed,
    }
    sys.stdout.write(json.dumps(answer) + "\n" if arguments.json else f"{answer}\n")


def an_epoch(size: int, *, sharded: bool, shared: bool) -> float:
    """Seconds of the steps, by so many processes."""
    context = multiprocessing.get_context("spawn")
    took: SimpleQueue[float] = context.SimpleQueue()
    port = free_port()
    ranks = [Ranks(rank=rank, size=size, sharded=sharded) for rank in range(size)]
    processes = [context.Process(target=work, args=(member, port, shared, took)) for member in ranks]
    for process in processes:
        process.start()
    found = took.get()
    for process in processes:
        process.join()
    return found


def work(ranks: Ranks, port: int, shared: bool, took: "SimpleQueue[float]") -> None:
    """The body of a process."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(ranks.rank), "WORLD_SIZE": str(ranks.size), "LOCAL_RANK": str(ranks.rank)}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    folder, corpus, records = STORIES if shared else QUICKSTART
    checkpoint = load_checkpoint(folder)
    read = examples(checkpoint, corpus, records, ATDP)
    with process_group(), tempfile.TemporaryDirectory() as own, (Path(own) / "journal").open("w") as journal:
        engine = select_engine(checkpoint.model, "ghost", ignore, ranks=ranks).run
        if ranks.sharded:
            shard_model(checkpoint.model, ranks, torch.device("cpu"))
        started = time.monotonic()
        run_private(
            stage_run(checkpoint.model, plan(ATDP, records), examples=read, ranks=ranks),
            engine=engine,
            randomness=Randomness(sample=insecure_stream(0, "sample"), noise=insecure_stream(0, "noise")),
            journal=journal,
        )
        if ranks.first:
            took.put(time.monotonic() - started)


if __name__ == "__main__":
    main()
