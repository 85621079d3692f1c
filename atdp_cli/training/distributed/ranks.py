"""One of several processes that train one model together. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: From 0 to `size` − 1. The first holds the ledger and writes all that is written.
        size: How many they are.
        sharded: Each holds a part of every parameter, not all of it.
    """

    rank: int = 0
    size: int = 1
    sharded: bool = False

    @property
    def first(self) -> bool:
        """Whether it is the one that writes."""
        return self.rank == 0


SINGLE_PROCESS = Ranks()


def local_items(ranks: Ranks, items: Sequence[Item]) -> Sequence[Item]:
    """This process's items: each belongs to one of them, and none has over one more than another."""
    return items[ranks.rank :: ranks.size]
