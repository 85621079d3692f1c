"""The plan is on the screen before what takes long is begun."""

import subprocess
import sys
from pathlib import Path

import pytest

HARDEN = "harden model --data corpus.txt"

SHOWS = """
import sys
from pathlib import Path
from atdp_cli.cli import harden
from atdp_cli.cli.app import run
from atdp_cli.errors import UsageError
from atdp_cli.hardening import plan

hashed = []
sha256 = plan.file_sha256
plan.file_sha256 = lambda path: (hashed.append(Path(path).name), sha256(path))[1]

def show(*_, **__):
    print(*(name for name in ("torch", "spacy") if name in sys.modules), *hashed, "shown")
    raise UsageError("shown", "")

harden.show_plan = show
for command in sys.argv[1:]:
    run(command.split())
"""


@pytest.mark.ci
def test_a_plan_is_shown_before_anything_is_loaded_or_hashed(tmp_path: Path, checkpoint_folder: Path) -> None:
    """So that the first line is there in a second, however large the model is."""
    (tmp_path / "model").symlink_to(checkpoint_folder)
    (tmp_path / "corpus.txt").write_text("".join(f"Emma wrote line {number}.\n" for number in range(40)))
    every = (f"{HARDEN} --dry-run", HARDEN, f"{HARDEN} --recipe redacted", f"{HARDEN} -o new", f"{HARDEN} --force")
    done = subprocess.run(
        [sys.executable, "-c", SHOWS, *every],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "", "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["shown"] * len(every), done.stderr
