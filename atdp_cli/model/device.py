"""Threads of this process."""

import torch

from atdp_cli.errors import UsageError


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
