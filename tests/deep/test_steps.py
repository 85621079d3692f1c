"""Ten thousand steps: what a process holds does not grow with the steps that it has taken."""

import os
import sys
import time
from pathlib import Path

import pytest

from atdp_cli.hardening.resume import steps_of
from atdp_cli.hardening.workspace import checkpoint_numbers
from atdp_cli.privacy.ledger import read_verified
from tests.crashing import OUT, ended, started

pytestmark = pytest.mark.deep

STEPS, WARM_UP = 10_000, 1_000
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_over_ten_thousand_steps(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path
) -> None:
    """Sampled from outside, twice a second, with a state every three seconds."""
    data = ["--data", corpus, "--spans", span_file, "--tier", "low-entity", "--set", "run.max-records=60"]
    steps = ["--recipe", "dp-sgd", "--epochs", STEPS // 10, "--batch-size", 6, "--set", "run.checkpoint-every=0.05"]
    process, root = started(["harden", checkpoint_folder, *data, *steps, "-q"], tmp_path), tmp_path / f"{OUT}.partial"
    begun, held, states = time.monotonic(), dict[int, int](), set[int]()
    while process.is_alive():
        time.sleep(0.5)
        taken = (tmp_path / "witness").stat().st_size if (tmp_path / "witness").exists() else 0
        if WARM_UP <= taken < STEPS and process.pid is not None:
            held[taken] = resident(process.pid)
        states.update(checkpoint_numbers(root))
    assert ended(process) == 0, (tmp_path / "log").read_text()
    seconds = time.monotonic() - begun
    first, lowest, highest = held[min(held)], min(held.values()), max(held.values())
    print(
        f"{STEPS} steps in {seconds:.0f} s, {max(states)} states; RSS {first / 2**20:.0f} MiB after "
        f"{min(held)} steps, then {lowest / 2**20:.0f} to {highest / 2**20:.0f} MiB in {len(held)} samples"
    )
    assert steps_of(read_verified(tmp_path / OUT).events) == STEPS
    assert len(held) > 20
    assert max(states) > 5
    assert 0.95 * first <= lowest <= highest <= 1.05 * first


def resident(process: int) -> int:
    """What a process has in memory, in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
