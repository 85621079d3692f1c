"""docs/python.md: its examples run, print what they say, and have the types that they seem to have."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.page import BLOCKS, shown
from tests.conftest import ROOT


@pytest.mark.ci
def test_the_examples_run_in_order_and_print_what_they_say(  # noqa: PLR0917 - fixtures
    tmp_path: Path,
    checkpoint_folder: Path,
    corpus: Path,
    fixed_manifest: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(checkpoint_folder, "model")
    shutil.copy(corpus, "corpus.txt")
    shutil.copy(fixed_manifest, "canaries.json")
    names: dict[str, Any] = {}
    for block in BLOCKS:
        capfd.readouterr()
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102 - the page's own examples
        printed = capfd.readouterr().out.splitlines()
        assert [line for line in printed if line in shown(block)] == shown(block), printed


@pytest.mark.deep
def test_the_examples_have_types(tmp_path: Path) -> None:
    """A type checker that sees the examples alone finds nothing wrong, and a wrong keyword it does."""
    file = tmp_path / "example.py"
    for text, code in (("\n".join(BLOCKS), 0), ("\n".join(BLOCKS).replace("min_confidence", "least_confidence"), 1)):
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stdout
