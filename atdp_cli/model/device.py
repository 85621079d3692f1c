"""The device that computes, and the number of threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from atdp_cli.errors import UsageError
from atdp_cli.settings import require_at_least, require_at_most


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ONE_THREAD_BELOW = 10_000_000
"""Models with fewer parameters train faster on one thread: one of 1.9M took 27 s, against 41 s on two."""

MAX_THREADS = 1024

GPU_BLOCK = 1 << 24
"""Numbers that a GPU handles at a time: starting an operation there takes as long as a million numbers."""

DEVICES = ("auto", "cpu", "cuda")
"""The devices by name, without Apple's GPUs, which lack the double precision of norms and noise."""


def find_device(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU if there is one.

    Raises:
        UsageError: This machine has no such device.
    """
    if name not in DEVICES:
        raise UsageError(f"device is '{name}'.", f"Choose one of {', '.join(DEVICES)}.")
    cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda else "cpu")
    if name == "cuda" and not cuda:
        raise UsageError("torch sees no GPU here.", "Leave --device out.")
    return torch.device(name)


def move_model(model: nn.Module, device: torch.device) -> None:
    """Move a model, in place, to a device where gradients can then be computed.

    On a GPU torch computes them in a thread of its own, and warns where the first thing there is a matrix product.
    """
    if device.type == "cuda":
        # Read at a GPU's first matrix product; without it torch's deterministic operations refuse to run.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        (2 * torch.ones((), device=device, requires_grad=True)).backward()  # type: ignore[no-untyped-call]
    model.to(device)


@contextmanager
def same_bits(device: torch.device) -> Iterator[None]:
    """On a GPU, run a model by operations that give the same bits twice, as backward attention does not by itself.

    An operation that has no such form raises RuntimeError.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    deterministic: Any = torch.utils.deterministic
    filled = deterministic.fill_uninitialized_memory
    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(kernels):
        # With a warning only, attention would stay as it is.
        torch.use_deterministic_algorithms(True, warn_only=False)
        deterministic.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            deterministic.fill_uninitialized_memory = filled


def block_size(device: torch.device, in_cache: int) -> int:
    """How many numbers to handle at a time: on a CPU those that its cache holds, elsewhere at least `GPU_BLOCK`."""
    return in_cache if device.type == "cpu" else max(in_cache, GPU_BLOCK)


def training_threads(parameters: int) -> int | None:
    """The default number of threads for training; None for torch's own default."""
    return 1 if parameters < ONE_THREAD_BELOW else None


def use_threads(threads: int | None) -> None:
    """Set torch's number of threads; None leaves it as it is.

    Raises:
        UsageError: Fewer than one, or more than `MAX_THREADS`.
    """
    if threads is None:
        return
    require_at_least("threads", threads, 1)
    require_at_most("threads", threads, MAX_THREADS)
    torch.set_num_threads(threads)
