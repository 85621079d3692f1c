"""Joining the processes that torchrun started for one run, and leaving them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from atdp_cli.errors import RunError, UsageError
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

LONGEST_WAIT = timedelta(days=1)
"""For the first process to read a corpus, say. One that ends is noticed at once, by its closed connection."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProcessGroup:
    """The processes of a run.

    Attributes:
        store: Kept by torchrun, so that it outlives each of them; None for a process alone.
    """

    ranks: Ranks = SINGLE_PROCESS
    store: "Store | None" = None

    def first_to_fail(self) -> bool:
        """Whether no other process has said yet why the run ends: one message is enough."""
        if self.store is None:
            return True
        try:
            return self.store.add("failed", 1) == 1
        except RuntimeError:
            return self.ranks.first


@contextmanager
def process_group(*, sharded: bool = False, environment: Mapping[str, str] = os.environ) -> Iterator[ProcessGroup]:
    """This process among those that torchrun started with it; alone where it was started by itself.

    Args:
        sharded: Each holds a part of every parameter.

    Raises:
        UsageError: torchrun's variables cannot be read, or there are no processes to share parameters among.
        RunError: The others do not answer.
    """
    try:
        size, local = int(environment.get("WORLD_SIZE", "1")), int(environment.get("LOCAL_RANK", "0"))
    except ValueError:
        raise UsageError("WORLD_SIZE or LOCAL_RANK is no number.", "Start with torchrun, or unset them.") from None
    if size == 1:
        if sharded:
            raise UsageError("--shard-model parts a model among processes, and there is one.", "Start with torchrun.")
        yield ProcessGroup()
        return
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    if torch.cuda.is_available():
        torch.cuda.set_device(local % torch.cuda.device_count())
    try:
        store, rank, size = next(rendezvous("env://"))
        distributed.init_process_group(
            _backend(torch.cuda.is_available()), store=store, rank=rank, world_size=size, timeout=LONGEST_WAIT
        )
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"The {size} processes of this run do not find each other ({type(error).__name__}).",
            "Check what torchrun was given.",
        ) from error
    try:
        yield ProcessGroup(ranks=Ranks(rank=rank, size=size, sharded=sharded), store=store)
    finally:
        distributed.destroy_process_group()


def _backend(graphics: bool) -> str:
    return "cpu:gloo,cuda:nccl" if graphics else "gloo"
