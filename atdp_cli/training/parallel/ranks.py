"""This process among those that train one model together: joining and leaving them. Loads no torch by itself."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from atdp_cli.errors import RunError, UsageError

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: From 0 to `size` − 1. The first keeps the ledger and writes all files.
        size: The number of processes.
        sharded: Each holds a shard of every parameter, not the full one.
    """

    rank: int = 0
    size: int = 1
    sharded: bool = False

    @property
    def first(self) -> bool:
        """Whether it is the one that writes files."""
        return self.rank == 0


SINGLE_PROCESS = Ranks()


def local_items(ranks: Ranks, items: Sequence[Item]) -> Sequence[Item]:
    """This process's items: each item belongs to one process, and their numbers differ by at most one."""
    return items[ranks.rank :: ranks.size]


TIMEOUT = timedelta(days=1)
"""The longest wait for another process, such as while the first one reads a corpus. One that ends is noticed at once:
its connection closes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProcessGroup:
    """The processes of a run.

    Attributes:
        store: Kept by torchrun, so that it outlives each process; None for a single process.
    """

    ranks: Ranks = SINGLE_PROCESS
    store: "Store | None" = None

    def first_to_fail(self) -> bool:
        """Whether no other process has reported yet why the run ends, so that there is one message."""
        if self.store is None:
            return True
        try:
            return self.store.add("failed", 1) == 1
        except RuntimeError:
            return self.ranks.first


@contextmanager
def process_group(*, sharded: bool = False, environment: Mapping[str, str] = os.environ) -> Iterator[ProcessGroup]:
    """The group of processes that torchrun started; a group of one without torchrun.

    Args:
        sharded: Each process holds a shard of every parameter.

    Raises:
        UsageError: torchrun's variables are not numbers, or parameters are to be sharded in a single process.
        RunError: The other processes do not answer.
    """
    try:
        size, local = int(environment.get("WORLD_SIZE", "1")), int(environment.get("LOCAL_RANK", "0"))
    except ValueError:
        raise UsageError("WORLD_SIZE or LOCAL_RANK is not a number.", "Start with torchrun, or unset them.") from None
    if size == 1:
        if sharded:
            raise UsageError("run.shard-model needs several processes, and there is one.", "Start with torchrun.")
        yield ProcessGroup()
        return
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    if torch.cuda.is_available():
        torch.cuda.set_device(local % torch.cuda.device_count())
    try:
        store, rank, size = next(rendezvous("env://"))
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"The {size} processes of this run do not find each other ({type(error).__name__}).",
            "Check the options of torchrun.",
        ) from error
    try:
        yield ProcessGroup(ranks=Ranks(rank=rank, size=size, sharded=sharded), store=store)
    finally:
        distributed.destroy_process_group()
