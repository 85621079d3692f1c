"""What a run computes on."""

import os
import platform
from pathlib import Path

import torch

from atdp_cli.report.document import HardwareEntry

CPUINFO = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> HardwareEntry:
    """This machine: its processor, how many cores this process may use, memory in GiB, and the GPU of `device`."""
    return HardwareEntry(
        processor=_processor(),
        cores=cores(),
        memory=_memory(),
        accelerator=torch.cuda.get_device_name(device) if device.type == "cuda" else _other(device),
    )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _other(device: torch.device) -> str | None:
    return None if device.type == "cpu" else device.type


def _processor() -> str:
    if CPUINFO.is_file():
        for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> float:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return 0.0
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
