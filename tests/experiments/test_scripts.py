"""The scripts of the experiments, started as a user starts them."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.ci
@pytest.mark.parametrize("name", ["paper_table/run.py", "sweep/default.py", "sweep/unlearning.py"])
def test_a_script_finds_its_experiments_from_any_folder(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name), "--help"]
    assert "--corpus" in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
