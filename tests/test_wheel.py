"""The wheel, installed outside the checkout, has all that the commands need."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.cli.badinput.case import line
from tests.conftest import ROOT
from tests.small import write_corpus

PACKAGE = "atdp_cli"


def built(folder: Path) -> Path:
    """The wheel of this checkout; building asks an index for hatchling."""
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0 and "hatchling" in ended.stderr:
        pytest.skip("hatchling, which builds the wheel, cannot be had here")
    assert ended.returncode == 0, ended.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, wheel: Path) -> Path:
    """A new environment with the wheel, which finds everything else where this one has it; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    programs = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--quiet", str(wheel)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    # A folder that is named in such a file has no such files of its own: an editable installation stays out.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


COMMAND_LINES = (
    line("detect corpus.txt -o spans.jsonl"),
    line("harden model --data corpus.txt -o dp --recipe atdp --epochs 1"),
    line("account dp"),
    line("report dp --html -o report.html"),
)
"""What reads templates, schemas, lists of words and the pipeline."""

SCRIPT = """
import json, sys
import atdp_cli
from atdp_cli.cli.app import run
codes = [run(command) for command in json.loads(sys.argv[1])]
print(json.dumps({"codes": codes, "from": atdp_cli.__file__}), file=open("ended.json", "w"))
"""


@pytest.mark.ci
def test_the_wheel_has_what_commands_need_outside_the_checkout(
    tmp_path: Path, checkpoint_folder: Path, lines: list[str]
) -> None:
    wheel = built(tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as content:
        packed = {name for name in content.namelist() if name.startswith(f"{PACKAGE}/")}
    sources = (path for path in (ROOT / PACKAGE).rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert packed == {path.relative_to(ROOT).as_posix() for path in sources}

    programs, elsewhere = environment(tmp_path / "env", wheel), tmp_path / "elsewhere"
    shutil.copytree(checkpoint_folder, elsewhere / "model")
    write_corpus(elsewhere / "corpus.txt", lines)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        [programs / "python", "-c", SCRIPT, json.dumps(COMMAND_LINES)],
        cwd=elsewhere,
        env=alone,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    reported = json.loads((elsewhere / "ended.json").read_text())
    assert reported["codes"] == [0] * len(COMMAND_LINES), ended.stderr
    assert Path(reported["from"]).is_relative_to(tmp_path / "env")
    assert "<svg" in (elsewhere / "report.html").read_text(encoding="utf-8")
    assert subprocess.run([programs / "atdp", "--version"], cwd=elsewhere, env=alone, check=False).returncode == 0
