"""The container's files: linted everywhere, built and tried where Docker is."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci_runner import load
from tests.conftest import ROOT

PROGRAMS = Path(sys.executable).parent
CONTAINER = ROOT / "examples" / "container"


def test_the_dockerfile_and_the_scripts_pass_their_linters(tmp_path: Path) -> None:
    steps = tmp_path / "action.sh"
    steps.write_text("\n".join(step["run"] for step in load(ROOT / "action.yml")[0]["runs"]["steps"]))
    scripts = [CONTAINER / "build.sh", ROOT / "examples" / "ci" / "audit-all.sh"]
    for name, files in (
        ("hadolint", [CONTAINER / "Dockerfile"]),
        ("shellcheck", scripts),
        ("shellcheck", ["--shell=bash", steps]),
    ):
        command = [str(PROGRAMS / name), *map(str, files)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.deep
def test_the_image_runs_without_a_network_and_without_rights() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker answers here")
    subprocess.run([CONTAINER / "build.sh", "cpu"], check=True)
