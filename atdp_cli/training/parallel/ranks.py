"""This process among those that train one model together. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

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
