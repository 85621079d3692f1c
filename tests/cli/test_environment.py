"""What the environment says changes no result and ends no command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PLACES = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "strict latin": {"PYTHONIOENCODING": "latin-1:strict"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "no date": {"SOURCE_DATE_EPOCH": "x"},
    "a date before all": {"SOURCE_DATE_EPOCH": "-1e400"},
    "no terminal": {"TERM": "", "COLUMNS": "x", "LINES": "-1"},
}

COMMANDS = (
    "harden --list-recipes",
    "harden --help",
    "account --recipe atdp --records 20000",
    "account --sampling-probability 0.01 --noise-multiplier 1 --steps 100 --json",
    "account --recipe fitted-decoys --records 20000 --json",
)


def ended(command: list[str], **environment: str) -> "subprocess.CompletedProcess[bytes]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    whole = clean | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run([sys.executable, "-m", "atdp_cli", *command], env=whole, capture_output=True, check=False)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", PLACES)
def test_no_environment_ends_a_command(place: str, command: str) -> None:
    done = ended(command.split(), **PLACES[place])
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    if "--json" in command:
        assert json.loads(done.stdout.decode("latin-1" if "latin" in place else "utf-8")) == json.loads(
            ended(command.split(), PYTHONUTF8="1").stdout
        )


def test_json_stays_json_where_its_text_has_no_encoding(tmp_path: Path) -> None:
    """Also a mark beyond sixteen bits, in the name of a file."""
    corpus = tmp_path / "mail ε 😀.txt"
    corpus.write_text("Emma Clarke called.\n")
    done = ended(
        ["redact", str(corpus), "-o", str(tmp_path / "ü😀.txt"), "--json", "--set", "run.store=none"],
        PYTHONIOENCODING="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("ascii"))["output"] == str(tmp_path / "ü😀.txt")
