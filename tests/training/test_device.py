"""Runs on a device that refuses to mix with the CPU, in a process of their own; see `on_other_device.py`."""

import subprocess
import sys

import pytest

from tests.fresh import ROOT, environment

QUICK = "[atdp-ghost] or noticed"


@pytest.mark.parametrize(
    "chosen", [pytest.param(QUICK, marks=pytest.mark.ci), pytest.param(f"not ({QUICK})", marks=pytest.mark.deep)]
)
def test_nothing_of_a_run_is_left_on_the_cpu(chosen: str) -> None:
    command = [sys.executable, "-m", "pytest", "tests/training/on_other_device.py", "-k", chosen]
    done = subprocess.run(
        command, env=environment(ROOT), cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
