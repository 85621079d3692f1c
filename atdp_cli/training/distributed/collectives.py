"""What processes that train together tell each other. All of them call the same functions in the same order.

For one process alone each of these costs nothing and needs no `torch.distributed`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import distributed

from atdp_cli.errors import LostRankError
from atdp_cli.training.distributed.ranks import Ranks

LARGE = 1 << 20
"""Numbers that are worth a message of their own."""


def all_reduce_sum(ranks: Ranks, parts: Sequence[torch.Tensor]) -> None:
    """Each tensor becomes its sum over the processes, in place and the same bits in all of them."""
    if ranks.size == 1:
        return
    with _all_there():
        for group in _alike(parts):
            if len(group) == 1:
                distributed.all_reduce(group[0])
                continue
            joint = torch.cat([part.flatten() for part in group])
            distributed.all_reduce(joint)
            for part, found in zip(group, torch.split(joint, [part.numel() for part in group]), strict=True):
                part.copy_(found.view_as(part))


def _alike(parts: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """The tensors in groups of one dtype and device, those that are small together: each message takes its time."""
    groups: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for part in parts:
        if part.numel() >= LARGE:
            yield [part]
        else:
            groups.setdefault((part.dtype, part.device), []).append(part)
    yield from groups.values()


def all_gather(ranks: Ranks, own: torch.Tensor, count: int) -> torch.Tensor:
    """What each process has of `count` numbers, in the order of the whole; `share` has parted them.

    Args:
        own: Shape [share], on the CPU.

    Returns:
        Shape [count].
    """
    if ranks.size == 1:
        return own
    found = torch.zeros(count, dtype=own.dtype)
    found[ranks.rank :: ranks.size] = own
    all_reduce_sum(ranks, [found])
    return found


def all_reduce_any(ranks: Ranks, said: Sequence[bool]) -> tuple[bool, ...]:
    """For each question whether one of the processes says yes."""
    if ranks.size == 1:
        return tuple(said)
    found = torch.tensor(said, dtype=torch.int64)
    all_reduce_sum(ranks, [found])
    return tuple(bool(one) for one in found)


def all_reduce_max(ranks: Ranks, number: int) -> int:
    """The largest of the processes' numbers."""
    if ranks.size == 1:
        return number
    found = torch.zeros(ranks.size, dtype=torch.int64)
    found[ranks.rank] = number
    all_reduce_sum(ranks, [found])
    return int(found.max())


def broadcast_bytes(ranks: Ranks, message: bytes = b"") -> bytes:
    """What the first process says; what the others say does not count."""
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
    with _all_there():
        for part in parts:
            if part.numel():
                distributed.broadcast(part, src=0)


@contextmanager
def _all_there() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise LostRankError(
            "Another process of this run has ended.", "Its message, or torchrun's, says why; go on with --resume."
        ) from error
