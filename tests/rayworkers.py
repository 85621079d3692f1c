"""Processes of Ray that a test may end from outside."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

TASK = b"ray::_task"
"""How a worker calls itself while it works for `onray`."""


def kill_a_busy_worker(seconds: float = 60) -> int:
    """End one with SIGKILL, and say which."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for pid, name in _below(os.getpid()):
            if name.startswith(TASK):
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.01)
    raise TimeoutError("no worker was busy")


def _below(ancestor: int) -> Iterator[tuple[int, bytes]]:
    """The processes under this one, as (id, command line)."""
    parents, names = dict[int, int](), dict[int, bytes]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                names[int(folder.name)] = (folder / "cmdline").read_bytes()
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
    for pid in names:
        above: int | None = pid
        while above is not None and above != ancestor:
            above = parents.get(above)
        if above == ancestor and pid != ancestor:
            yield pid, names[pid]
