"""Commands in fresh processes of one thread and without a GPU."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}

KEPT = ("PATH", "HOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


def environment(root: Path) -> dict[str, str]:
    """Of a command of the checkout at `root`."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return kept | SETTINGS | {"PYTHONPATH": str(root)}


def command(arguments: Sequence[object], *, processes: int = 1) -> list[str]:
    """The words that run `atdp` with these arguments, in several processes by torchrun."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [sys.executable, *(torchrun if processes > 1 else []), "-m", "atdp_cli", *map(str, arguments)]
