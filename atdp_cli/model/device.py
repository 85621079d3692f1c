"""Threads of this process, and the device that computes."""

import torch

from atdp_cli.errors import UsageError

SMALL = 10_000_000
"""Below so many parameters, training a record at a time is faster on one thread: a 1.9M model took 27 s against 41 s
on two."""


DEVICES = ("auto", "cpu", "cuda", "mps")


def find_device(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU where there is one.

    Raises:
        UsageError: There is no such device here.
    """
    if name not in DEVICES:
        raise UsageError(f"device is '{name}'.", f"Choose one of {', '.join(DEVICES)}.")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device("cuda" if there["cuda"] else "cpu")
    if not there[name]:
        raise UsageError(f"There is no device {name} here.", "Leave --device out.")
    return torch.device(name)


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
