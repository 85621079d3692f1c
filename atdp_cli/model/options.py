"""The options of a model's computation: device and threads."""

from typing import Annotated, Literal

from pydantic import PositiveInt

from atdp_cli.settings import RUNNING, Option, Options


class DeviceOptions(Options):
    """Where the arithmetic is done."""

    device: Annotated[Literal["auto", "cpu", "cuda"], Option(RUNNING, fingerprint=False)] = "auto"
    """auto takes the GPU where there is one."""


class ThreadOptions(Options):
    """How many threads compute."""

    threads: Annotated[PositiveInt | None, Option(flag=False, fingerprint=False)] = None
    """Threads for the arithmetic. Default: as torch chooses; one to harden under 10 million parameters."""


class ComputeOptions(ThreadOptions, DeviceOptions):
    """Both."""
