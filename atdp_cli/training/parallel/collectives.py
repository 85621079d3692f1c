"""Collective operations of the processes that train together: all call the same ones in the same order.

For a single process each costs nothing and needs no `torch.distributed`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import distributed

from atdp_cli.errors import LostRankError
from atdp_cli.training.parallel.ranks import Ranks

LARGE_TENSOR = 1 << 20
"""A tensor of so many numbers is sent by itself; smaller ones are sent together."""


def all_reduce_sum(ranks: Ranks, parts: Sequence[torch.Tensor]) -> None:
    """Each tensor becomes its sum over the processes, in place and the same bits in all of them."""
    if ranks.size == 1:
        return
    with _lost_ranks():
        for group in _groups(parts):
            if len(group) == 1:
                distributed.all_reduce(group[0])
                continue
            joint = torch.cat([part.flatten() for part in group])
            distributed.all_reduce(joint)
            for part, total in zip(group, torch.split(joint, [part.numel() for part in group]), strict=True):
                part.copy_(total.view_as(part))


def _groups(parts: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Large tensors by themselves, small ones grouped by dtype and device, since each message has its latency."""
    groups: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for part in parts:
        if part.numel() >= LARGE_TENSOR:
            yield [part]
        else:
            groups.setdefault((part.dtype, part.device), []).append(part)
    yield from groups.values()


def all_gather(ranks: Ranks, own: torch.Tensor, count: int) -> torch.Tensor:
    """All of `count` numbers, of which each process has those that `local_items` gives it.

    Args:
        own: This process's numbers, on the CPU.

    Returns:
        Shape [count].
    """
    if ranks.size == 1:
        return own
    gathered = torch.zeros(count, dtype=own.dtype)
    gathered[ranks.rank :: ranks.size] = own
    all_reduce_sum(ranks, [gathered])
    return gathered


def all_reduce_any(ranks: Ranks, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Each flag, true where it is true in at least one process."""
    counts = torch.tensor(flags, dtype=torch.int64)
    all_reduce_sum(ranks, [counts])
    return tuple(bool(count) for count in counts)


def all_reduce_max(ranks: Ranks, number: int) -> int:
    """The largest of the processes' numbers."""
    return int(all_gather(ranks, torch.tensor([number]), ranks.size).max())


def broadcast_bytes(ranks: Ranks, message: bytes = b"") -> bytes:
    """The first process's message; those of the others are ignored."""
    if ranks.size == 1:
        return message
    length = torch.tensor([len(message) if ranks.first else 0])
    all_reduce_sum(ranks, [length])
    content = torch.zeros(int(length), dtype=torch.uint8)
    if ranks.first and message:
        content.copy_(torch.frombuffer(bytearray(message), dtype=torch.uint8))
    broadcast_(ranks, [content])
    return content.numpy().tobytes()


def broadcast_(ranks: Ranks, parts: Sequence[torch.Tensor]) -> None:
    """Each tensor becomes that of the first process, in place."""
    if ranks.size == 1:
        return
    with _lost_ranks():
        for part in parts:
            if part.numel():
                distributed.broadcast(part, src=0)


@contextmanager
def main_process_first(ranks: Ranks) -> Iterator[None]:
    """Run the block in the first process, then in the others, so that they find what the first stored."""
    if not ranks.first:
        all_reduce_any(ranks, ())
    yield
    if ranks.first:
        all_reduce_any(ranks, ())


@contextmanager
def _lost_ranks() -> Iterator[None]:
    """Raises LostRankError where another process has ended."""
    try:
        yield
    except RuntimeError as error:
        raise LostRankError(
            "Another process of this run has ended.", "Its message, or torchrun's, says why; continue with --resume."
        ) from error
