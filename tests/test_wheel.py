"""The wheel, installed outside the checkout, has all that the commands need, and without torch what needs none."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.cli.app import COMMANDS, run
from tests.cli.badinput.case import line
from tests.conftest import ROOT
from tests.small import write_corpus

PACKAGE = "atdp_cli"

PROGRAMS = Path(sys.executable).parent

ALONE = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def tool(*command: object, **more: str) -> str:
    """Run a program of this environment, and return what it printed."""
    name, *arguments = map(str, command)
    process = subprocess.run(
        [str(PROGRAMS / name), *arguments], env={**ALONE, **more}, capture_output=True, text=True, check=False
    )
    if process.returncode != 0 and "hatchling" in process.stderr:
        pytest.skip("hatchling, which builds the wheel, cannot be had here")
    assert process.returncode == 0, process.stderr
    return process.stdout


def built(folder: Path) -> Path:
    """The wheel of this checkout; building asks an index for hatchling."""
    tool("python", "-m", "pip", "wheel", ROOT, "--no-deps", "--quiet", "--wheel-dir", folder)
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


SCRIPT = """
import contextlib, io, json, sys
from importlib.util import find_spec
import atdp_cli
from atdp_cli.cli.app import run
codes, errors = [], []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        codes.append(run(command))
    errors.append(said.getvalue())
ended = {"codes": codes, "errors": errors, "from": atdp_cli.__file__, "torch": find_spec("torch") is not None}
print(json.dumps(ended), file=open("ended.json", "w"))
"""


def ended(python: Path, folder: Path, commands: Sequence[Sequence[str]]) -> dict[str, Any]:
    """How commands end in a folder, all in one process."""
    command = [str(python), "-c", SCRIPT, json.dumps(commands)]
    process = subprocess.run(command, cwd=folder, env=ALONE, input="", capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    answer: dict[str, Any] = json.loads((folder / "ended.json").read_text())
    return answer


COMMAND_LINES = (
    line("detect corpus.txt -o spans.jsonl"),
    line("harden model --data corpus.txt -o dp --recipe atdp --epochs 1"),
    line("account dp"),
    line("report dp --html report.html"),
)
"""What reads templates, schemas, lists of words and the pipeline."""


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
    reported = ended(programs / "python", elsewhere, COMMAND_LINES)
    assert reported["codes"] == [0] * len(COMMAND_LINES), reported["errors"]
    assert Path(reported["from"]).is_relative_to(tmp_path / "env")
    assert "<svg" in (elsewhere / "report.html").read_text(encoding="utf-8")
    assert subprocess.run([programs / "atdp", "--version"], cwd=elsewhere, env=ALONE, check=False).returncode == 0


@pytest.mark.ci
def test_the_sdist_builds_the_same_wheel_and_an_index_would_take_both(tmp_path: Path) -> None:
    tool("uv", "build", "--quiet", "--out-dir", tmp_path / "dist", ROOT)
    (sdist,), (wheel,) = (tmp_path / "dist").glob("*.tar.gz"), (tmp_path / "dist").glob("*.whl")
    assert wheel.read_bytes() == built(tmp_path / "direct").read_bytes()
    tool("twine", "check", "--strict", sdist, wheel)


WITHOUT_TORCH = {
    "detect": "corpus.txt -o spans.jsonl",
    "review": "queue.jsonl",
    "redact": "corpus.txt -o redacted.txt",
    "account": "dp",
    "report": "dp --html report.html",
}
NEED_TORCH = {
    "harden": "model --data corpus.txt",
    "decoy": "corpus.txt -o decoyed",
    "plant-canary": "corpus.txt -o planted.txt --manifest m.json --tokenizer model",
    "audit-canary": "model --canary 49",
    "audit-corpus": "model --data corpus.txt --eval-data corpus.txt",
}


@pytest.mark.ci
def test_without_the_extra_torch_half_of_the_commands_work_and_the_others_name_it(
    tmp_path: Path, checkpoint_folder: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    write_corpus(tmp_path / "corpus.txt", lines[:60])
    monkeypatch.chdir(tmp_path)
    assert run(list(line("harden model --data corpus.txt -o dp --recipe atdp --epochs 1 -q"))) == 0
    assert run(list(line("detect corpus.txt -o first.jsonl --review queue.jsonl --set run.review-share=1 -q"))) == 0
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    wheel = f"atdp[english] @ {built(tmp_path / 'wheel').as_uri()}"
    tool(
        "uv", "tool", "install", "--quiet", "--python", sys.executable, "-c", ROOT / "constraints.txt", wheel, **places
    )

    assert {*WITHOUT_TORCH, *NEED_TORCH} == {*COMMANDS}
    commands = [list(line(f"{name} {rest}")) for name, rest in {**WITHOUT_TORCH, **NEED_TORCH}.items()]
    reported = ended(tmp_path / "tools" / "atdp" / "bin" / "python", tmp_path, commands)
    assert not reported["torch"]
    assert reported["codes"] == [0] * len(WITHOUT_TORCH) + [2] * len(NEED_TORCH), reported["errors"]
    assert all(
        "Install the extra: pip install 'atdp[torch]'." in said for said in reported["errors"][-len(NEED_TORCH) :]
    )
    assert subprocess.run([tmp_path / "bin" / "atdp", "--version"], env=ALONE, check=False).returncode == 0


def test_a_missing_torch_is_named(tmp_path: Path, checkpoint_folder: Path) -> None:
    write_corpus(tmp_path / "corpus.txt", ["Emma wrote."])
    command = line("audit-canary model --canary 49 -q")
    (tmp_path / "model").symlink_to(checkpoint_folder)
    without = (
        f"import sys; sys.modules['torch'] = None; from atdp_cli.cli.app import run; sys.exit(run({list(command)}))"
    )
    process = subprocess.run([sys.executable, "-c", without], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    said = "atdp: This needs the package torch, which is not installed. Install the extra: pip install 'atdp[torch]'.\n"
    assert process.stderr == said
