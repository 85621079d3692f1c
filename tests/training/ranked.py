"""Stages that several processes run together; each writes what its weights have become.

`started(size, …)` forks the processes from a server that has imported torch.
"""

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from atdp_cli.events import ignore
from atdp_cli.model.adapter import add_adapter
from atdp_cli.privacy.journal import open_journal
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import insecure_stream
from atdp_cli.privacy.schedule import RiseReset
from atdp_cli.training.clip.engine import ClippingEngine
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.objectives import NoLoss, Uniform
from atdp_cli.training.parallel.fsdp import full_tensor, shard_model
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks, process_group
from atdp_cli.training.plan import CorpusFacts, StagePlan, make_plan
from atdp_cli.training.recipe import DPSGD, SGD, AdamW, NonPrivate, Optimizer, TextVariant, Train
from atdp_cli.training.state import StageResult
from atdp_cli.training.trainer import Randomness, run_noise, run_plain, run_private
from tests.training.stages import stage_run
from tests.training.test_clipping import CLIP, example, gpt2, llama

RECORDS = 13
EXAMPLES = [example(*lengths, seed=seed) for seed, lengths in enumerate([(5,), (9,), (3, 4), (11,)] * 3 + [(2,)])]
ADAM = AdamW(learning_rate=1e-2)
PATIENCE = 300.0


def plan_of(optimizer: Optimizer, *, batch: int = 4, sigma: float = 0.5, nothing: bool = False) -> StagePlan:
    """Three epochs; with a batch of one, many samples are smaller than the number of processes, and some empty."""
    schedule = RiseReset(noise_multiplier=sigma, sigma_growth=1.5, jitter=(0.9, 1.1))
    stage = Train(
        name="dp-sgd",
        text=TextVariant.RAW,
        objective=NoLoss() if nothing else Uniform(),
        mechanism=DPSGD(clip_norm=CLIP, expected_batch=batch, schedule=schedule),
        epochs=3,
        optimizer=optimizer,
        annealing="linear",
    )
    return make_plan((stage,), _CORPUS, delta=1e-6, checkpoint_history="public").training[0]


def plain_plan() -> StagePlan:
    """Three epochs in batches of five.

    By SGD: a key's bias has no gradient but rounding, and Adam would make whole steps of that.
    """
    stage = Train(
        name="no-dp",
        text=TextVariant.RAW,
        objective=Uniform(),
        mechanism=NonPrivate(batch_size=5),
        epochs=3,
        optimizer=SGD(learning_rate=0.5),
    )
    return make_plan((stage,), _CORPUS, delta=1e-6, checkpoint_history="public").training[0]


_CORPUS = CorpusFacts(records=RECORDS, relation=hypothetical("line", "high-contextual"))


def _private(plan: StagePlan) -> Callable[[Any, Ranks, ClippingEngine, Path], StageResult]:
    def run(model: Any, ranks: Ranks, engine: ClippingEngine, journal: Path) -> StageResult:
        with open_journal(journal) as lines:
            return run_private(
                stage_run(model, plan, examples=EXAMPLES, ranks=ranks),
                engine=engine,
                randomness=Randomness(sample=insecure_stream(0, "sample"), noise=insecure_stream(0, "noise")),
                journal=lines,
            )

    return run


def _noise(model: Any, ranks: Ranks, engine: ClippingEngine, journal: Path) -> StageResult:
    plan, stream = plan_of(ADAM, nothing=True), insecure_stream(0, "noise")
    return run_noise(stage_run(model, plan, ranks=ranks), noise=stream)


def _plain(model: Any, ranks: Ranks, engine: ClippingEngine, journal: Path) -> StageResult:
    run = stage_run(model, plain_plan(), examples=EXAMPLES, ranks=ranks)
    return run_plain(run, seed=7, engine=engine if ranks.sharded else None)


STAGES = {
    "private": _private(plan_of(ADAM)),
    "rare": _private(plan_of(ADAM, batch=1)),
    "without noise": _private(plan_of(SGD(learning_rate=0.5), sigma=1e-6)),
    "noise": _noise,
    "plain": _plain,
}


def adapter() -> Any:
    """A Llama with LoRA, whose random numbers are the same in every process."""
    torch.manual_seed(0)
    return add_adapter(llama(), 2)


MODELS: dict[str, Callable[[], Any]] = {
    "tied": gpt2,
    "untied": lambda: gpt2(tied=False),
    "llama": llama,
    "adapter": adapter,
}


def undropped(model: Any) -> Any:
    """Without dropout, whose masks depend on who draws them."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def trained(stage: str, model: str, ranks: Ranks, journal: Path) -> tuple[dict[str, torch.Tensor], StageResult]:
    """The weights that a stage leaves, whole, and what it counted."""
    made = undropped(MODELS[model]())
    chosen = select_engine(made, "ghost", ignore, ranks=ranks)
    if ranks.sharded:
        shard_model(made, ranks, torch.device("cpu"))
    result = STAGES[stage](made, ranks, chosen.run, journal)
    return {name: full_tensor(parameter.detach()).clone() for name, parameter in made.named_parameters()}, result


def run_rank(rank: int, size: int, port: int, folder: str, runs: list[tuple[str, str, bool]]) -> None:
    """The body of a process: each of the runs in turn, its weights written as `STAGE MODEL SHARDED RANK`."""
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
    }
    with process_group() as team:
        for stage, model, sharded in runs:
            ranks = Ranks(rank=team.ranks.rank, size=size, sharded=sharded)
            actual, result = trained(stage, model, ranks, Path(folder) / f"journal {stage} {model} {sharded} {rank}")
            norms = torch.tensor([-1.0 if norm is None else norm for norm in result.mean_norms])
            save_file(actual | {"norms": norms}, Path(folder) / f"{stage} {model} {sharded} {rank}")


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as actual:
        actual.bind(("localhost", 0))
        return int(actual.getsockname()[1])


def together(size: int, folder: Path, runs: list[tuple[str, str, bool]]) -> None:
    """Run them in so many processes, to their end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.ranked"])
    port = free_port()
    processes = [context.Process(target=run_rank, args=(rank, size, port, str(folder), runs)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    assert codes == [0] * size


def alone(stage: str, model: str, folder: Path) -> tuple[dict[str, torch.Tensor], StageResult]:
    """The same in this process."""
    return trained(stage, model, SINGLE_PROCESS, folder / f"journal {stage} {model} alone")
