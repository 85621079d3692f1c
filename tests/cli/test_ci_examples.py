"""The examples for a CI: every command parses, and the real `atdp` runs it on small models."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.cli.app import make_command
from tests.cli.conftest import Leaky
from tests.reporting.test_sarif import check_sarif

ROOT = Path(__file__).parents[2]
CI = ROOT / "examples" / "ci"
TOOL = Path(sys.executable).with_name("atdp")


def _yaml(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((CI / name).read_text(encoding="utf-8"))


def _github() -> str:
    (step,) = [step for step in _yaml("github-actions.yml")["jobs"]["audit"]["steps"] if step.get("name") == "Audit"]
    return str(step["run"])


def _gitlab() -> str:
    return "\n".join(_yaml("gitlab-ci.yml")["canary-audit"]["script"])


def _hook() -> str:
    (hook,) = _yaml("pre-commit-config.yaml")["repos"][0]["hooks"]
    return f"{hook['entry']} {shlex.join(hook['args'])}"


SCRIPTS = {"github": _github, "gitlab": _gitlab, "pre-commit": _hook}


def _commands(text: str) -> list[list[str]]:
    """The arguments of every `atdp` in a script or a page."""
    lines = [line.partition("with: ")[2] or line for line in text.replace("`", "\n").split("\n")]
    return [shlex.split(line.split(" || ")[0])[1:] for line in lines if line.strip().startswith("atdp ")]


@pytest.fixture
def project(leaky: Leaky, checkpoint_folder: Path, tmp_path: Path) -> Path:
    """A folder as the examples expect it, with a leaky model and an innocent one."""
    for name, model in (("runs/a", checkpoint_folder), ("runs/b", leaky.model), ("base", checkpoint_folder)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(model)
    (tmp_path / "runs" / "b.private").mkdir()
    (tmp_path / "model").symlink_to(leaky.model)
    return tmp_path


def _run(command: list[str], folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    if not TOOL.exists():
        pytest.skip("atdp is not installed beside this Python")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    path = f"{TOOL.parent}{os.pathsep}{os.environ['PATH']}"
    environment = inherited | {"PATH": path, "OMP_NUM_THREADS": "1"} | settings
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_yaml_is_of_its_kind_and_its_commands_parse(name: str) -> None:
    _parse(_commands(SCRIPTS[name]()))


@pytest.mark.parametrize("page", [ROOT / "docs" / "ci.md", CI / "README.md", CI / "pre-commit-config.yaml"])
def test_the_commands_in_the_pages_parse(page: Path) -> None:
    _parse(_commands(page.read_text(encoding="utf-8")))


def _parse(commands: list[list[str]]) -> None:
    assert commands
    for name, *rest in commands:
        if rest != ["--help"]:
            make_command(name).make_context(name, rest)


@pytest.mark.ci
def test_the_workflow(project: Path, leaky: Leaky) -> None:
    settings = {"ATDP_CANARIES": leaky.manifest.read_text(), "GITHUB_ACTIONS": "true"}
    ended = _run(["bash", "-e", "-c", _github()], project, **settings, GITHUB_STEP_SUMMARY=str(project / "summary.md"))
    assert ended.returncode == 1, ended.stderr
    assert (project / "canaries.json").stat().st_mode & 0o077 == 0
    log = json.loads((project / "audit.sarif").read_text())
    check_sarif(log)
    assert any(result["ruleId"] == "model-remembers" for result in log["runs"][0]["results"])
    assert "::error file=canaries.json,line=" in ended.stderr
    assert "| runs/b | FAIL |" in (project / "summary.md").read_text()


@pytest.mark.ci
def test_the_gitlab_job(project: Path, leaky: Leaky) -> None:
    job = _yaml("gitlab-ci.yml")["canary-audit"]
    ended = _run(["bash", "-e", "-c", _gitlab()], project, CANARIES=str(leaky.manifest))
    assert ended.returncode == 1, ended.stderr
    assert ended.returncode != job["allow_failure"]["exit_codes"]
    suites = ET.parse(project / job["artifacts"]["reports"]["junit"]).getroot()  # noqa: S314 - our own
    assert [suite.get("name") for suite in suites] == ["runs/a", "runs/b"]


@pytest.mark.deep
def test_the_hook_passes_what_was_recorded_and_no_more(project: Path, leaky: Leaky) -> None:
    shutil.copy(leaky.manifest, project / "canaries.json")
    (record,) = _commands((CI / "pre-commit-config.yaml").read_text())
    assert _run(["atdp", *record], project).returncode == 1
    hook = shlex.split(_hook())
    assert _run(hook, project).returncode == 0
    kept = json.loads((project / "audit-baseline.json").read_text())
    kept["models"] = {}
    (project / "audit-baseline.json").write_text(json.dumps(kept))
    assert _run(hook, project).returncode == 1


def _many_checkpoints() -> list[str]:
    """The scripts of the guide: one model after the other, and four at a time."""
    section = (ROOT / "docs" / "many.md").read_text(encoding="utf-8").split("many checkpoints\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.mark.deep
@pytest.mark.parametrize(
    "script", [0, pytest.param(1, marks=pytest.mark.deep)], ids=["one after the other", "four at a time"]
)
def test_the_guides_loops_over_many_checkpoints(
    checkpoint_folder: Path, leaky: Leaky, corpus: Path, tmp_path: Path, script: int
) -> None:
    loop = _many_checkpoints()[script]
    (tmp_path / "models").mkdir()
    for name, model in (("models/a", checkpoint_folder), ("models/b", leaky.model), ("base", checkpoint_folder)):
        (tmp_path / name).symlink_to(model)
    (tmp_path / "canaries.json").symlink_to(leaky.manifest)
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "corpus.txt").write_text("".join(lines[:40]), encoding="utf-8")
    ended = _run(["bash", "-c", loop], tmp_path)
    for name in ("a", "b"):
        assert (tmp_path / "hardened" / name / "privacy_report.json").exists(), ended.stderr
    assert "ended with" not in ended.stdout
    audited = "audit-canary" in loop
    assert bool(re.search("PASS|FAIL|INCONCLUSIVE", ended.stdout)) is audited
    assert ended.returncode in ((0, 1, 4) if audited else (0,)), ended.stderr


@pytest.mark.ci
def test_the_loop(project: Path, leaky: Leaky) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is absent")
    loop = [str(CI / "audit-all.sh"), "runs", str(leaky.manifest), "--alpha", "0.05"]
    (project / "runs" / "c").mkdir()
    ended = _run(loop, project)
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("PASS", "runs/a"), ("FAIL", "runs/b"), ("ERROR", "runs/c")]
    assert all(float(row[1]) >= 0 for row in rows[:2])
    assert ended.returncode == 3
    (project / "empty").mkdir()
    assert _run([loop[0], "empty", *loop[2:]], project).returncode == 2
