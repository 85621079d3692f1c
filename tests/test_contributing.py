"""The worked examples of docs/CONTRIBUTING.md: they are small, they apply, and what they add works."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(
    r"^```diff\n(.*?)^```$", (ROOT / "docs" / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)
MOST_CHANGED = 40

CHECKS = """
from atdp_cli.cli.app import run
from atdp_cli.detection.identifiers.accounts import badge
from atdp_cli.reporting.document import PublicReport
from atdp_cli.training.recipe import parse_recipe

assert list(badge("My badge: B-123.")) == [(10, 15, "BADGE")]
[stage] = parse_recipe("emphasised")
assert stage.objective.describe() == "emphasised"
assert "noisy_steps" in PublicReport.model_fields
assert run(["labels", "--json"]) == 0
"""


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The package with all examples applied."""
    for name in ("atdp_cli", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for example in EXAMPLES:
        command = ["git", "apply", "-C1", "-"]
        ended = subprocess.run(command, cwd=tmp_path, input=example, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    return tmp_path


def test_there_are_four_examples_of_few_lines_each() -> None:
    counts = [len(re.findall(r"^[+-](?!\+\+|--)", example, re.MULTILINE)) for example in EXAMPLES]
    assert len(counts) == 4
    assert max(counts) < MOST_CHANGED, counts


def test_the_examples_apply(changed: Path) -> None:
    assert "BADGE" in (changed / "docs" / "identifiers.md").read_text(encoding="utf-8")


@pytest.mark.ci
def test_what_the_examples_add_works(changed: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", CHECKS], cwd=changed, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert '"BADGE"' in ended.stdout
