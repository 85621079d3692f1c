"""Threads of this process."""

import torch

from atdp_cli.errors import UsageError

SMALL = 10_000_000
"""Below so many parameters, training a record at a time is faster on one thread: a 1.9M model took 27 s against 41 s
on two."""


def training_threads(parameters: int) -> int | None:
    """How many threads to train with where the user did not say; None for as many as torch takes."""
    return 1 if parameters < SMALL else None


def use_threads(threads: int | None) -> None:
    """Set torch's threads; None leaves them as they are.

    Raises:
        UsageError: Fewer than one.
    """
    if threads is None:
        return
    if threads < 1:
        raise UsageError(f"threads is {threads}.", "Choose a whole number of at least 1.")
    torch.set_num_threads(threads)
