"""Threads of this process, and the device that computes."""

import torch

from atdp_cli.errors import UsageError
from atdp_cli.ranges import require_at_least, require_at_most

SMALL = 10_000_000
"""Below so many parameters, training a record at a time is faster on one thread: a 1.9M model took 27 s against 41 s
on two."""


MOST_THREADS = 1024

DEVICES = ("auto", "cpu", "cuda")
"""Apple's GPUs have no double precision, in which norms and noise are."""


def find_device(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU where there is one.

    Raises:
        UsageError: There is no such device here.
    """
    if name not in DEVICES:
        raise UsageError(f"device is '{name}'.", f"Choose one of {', '.join(DEVICES)}.")
    graphics = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if graphics else "cpu")
    if name == "cuda" and not graphics:
        raise UsageError("torch sees no GPU here.", "Leave --device out.")
    return torch.device(name)


def training_threads(parameters: int) -> int | None:
    """How many threads to train with where the user did not say; None for as many as torch takes."""
    return 1 if parameters < SMALL else None


def use_threads(threads: int | None) -> None:
    """Set torch's threads; None leaves them as they are.

    Raises:
        UsageError: Fewer than one, or more than `MOST_THREADS`.
    """
    if threads is None:
        return
    require_at_least("threads", threads, 1)
    require_at_most("threads", threads, MOST_THREADS)
    torch.set_num_threads(threads)
