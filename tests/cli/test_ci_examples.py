"""What a CI runs of atdp: the Action, the GitLab template, the hooks and the scripts, each as its file says."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.cli.app import make_command
from atdp_cli.cli.staged import detect_staged
from tests.ci_runner import (
    ROOT,
    Machine,
    github_workflow,
    gitlab_job,
    gitlab_run,
    hook_command,
    load,
    machine_with,
    run_hook,
)
from tests.cli.conftest import Leaky
from tests.reporting.test_sarif import check_sarif

CI = ROOT / "examples" / "ci"
HOOKS = CI / "pre-commit-config.yaml"
HERE = Path(sys.executable).parent


def _action() -> str:
    return (
        str(load(ROOT / "action.yml")[0]["runs"]["steps"][-1]["run"]).replace("$OPTIONS", "").replace("$ALPHA", "0.01")
    )


def _gitlab() -> str:
    return "\n".join(gitlab_job(CI / "gitlab-ci.yml", "canary-audit")["script"])


def _hook(name: str) -> str:
    return shlex.join(hook_command(HOOKS, name)[0])


SCRIPTS: dict[str, Callable[[], str]] = {
    "github": _action,
    "gitlab": _gitlab,
    "pre-push": lambda: _hook("atdp-audit-canary"),
    "pre-commit": lambda: _hook("atdp-detect").replace("python -m atdp_cli.cli.staged", "atdp detect added.jsonl"),
}


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


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment, which finds what atdp needs where this one has it, and has no atdp of its own yet."""
    folder = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    # A folder that is named in such a file has no such files of its own: an editable installation stays out.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return machine_with(HERE, folder, PYTHONPATH=str(ROOT)).run(command)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_yaml_is_of_its_kind_and_its_commands_parse(name: str) -> None:
    _parse(_commands(SCRIPTS[name]()))


@pytest.mark.parametrize("page", [ROOT / "docs" / "ci.md", CI / "README.md", HOOKS])
def test_the_commands_in_the_pages_parse(page: Path) -> None:
    _parse(_commands(page.read_text(encoding="utf-8")))


def _parse(commands: list[list[str]]) -> None:
    assert commands
    for name, *rest in commands:
        if rest != ["--help"]:
            make_command(name).make_context(name, rest)


@pytest.mark.ci
def test_the_workflow_installs_audits_and_hands_on_what_it_found(project: Path, leaky: Leaky, programs: Path) -> None:
    summary = project / "summary.md"
    machine = machine_with(programs, project, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    secrets = {"secrets.ATDP_CANARIES": leaky.manifest.read_text()}
    ended = github_workflow(CI / "github-actions.yml", "audit", machine, secrets)
    assert ended.code == 1, ended.err
    assert (programs / "atdp").exists()
    assert (project / "canaries.json").stat().st_mode & 0o077 == 0
    log = json.loads((project / ended.services["github/codeql-action/upload-sarif"]["sarif_file"]).read_text())
    check_sarif(log)
    assert any(result["ruleId"] == "model-remembers" for result in log["runs"][0]["results"])
    assert "::error file=canaries.json,line=" in ended.err
    assert "| runs/b | FAIL |" in summary.read_text()


@pytest.mark.ci
def test_the_gitlab_job_installs_and_audits(project: Path, leaky: Leaky, programs: Path) -> None:
    job = gitlab_job(CI / "gitlab-ci.yml", "canary-audit")
    machine = machine_with(programs, project)
    ended = gitlab_run(job, machine, CANARIES=str(leaky.manifest), ATDP=f"{ROOT}[torch]")
    assert ended.code == 1, ended.err
    assert ended.code != job["allow_failure"]["exit_codes"]
    suites = ET.parse(project / job["artifacts"]["reports"]["junit"]).getroot()  # noqa: S314 - our own
    assert [suite.get("name") for suite in suites] == ["runs/a", "runs/b"]


@pytest.mark.deep
def test_the_hook_passes_what_was_recorded_and_no_more(project: Path, leaky: Leaky) -> None:
    shutil.copy(leaky.manifest, project / "canaries.json")
    (record,) = _commands(HOOKS.read_text())
    assert _run(["atdp", *record], project).returncode == 1
    hook = shlex.split(_hook("atdp-audit-canary"))
    assert _run(hook, project).returncode == 0
    kept = json.loads((project / "audit-baseline.json").read_text())
    kept["models"] = {}
    (project / "audit-baseline.json").write_text(json.dumps(kept))
    assert _run(hook, project).returncode == 1


@pytest.fixture
def repository(tmp_path: Path) -> Machine:
    """A repository in which a line with a name has been committed, and others are added in the index and beside it."""
    machine = machine_with(HERE, tmp_path, GIT_CONFIG_GLOBAL=os.devnull, PYTHONPATH=str(ROOT))
    (tmp_path / "data").mkdir()
    old = tmp_path / "data" / "a b.md"
    old.write_text("Emma Clarke wrote.\n++ a list\nthe end\n")
    for command in ("init -q", "add .", "-c user.name=x -c user.email=x@example.com commit -qm first"):
        assert machine.run(["git", *command.split()]).returncode == 0
    old.write_text("Emma Clarke wrote.\n++ a list\n++ of more\n\nAsk mary.jones@example.com, not me.\nthe end\n")
    (tmp_path / "data" / "ü.txt").write_text("nothing here\nat 192.168.7.12\n")
    (tmp_path / "data" / "image.png").write_bytes(b"\0mary.jones@example.com\n")
    (tmp_path / "code.py").write_text("# mary.jones@example.com\n")
    machine.run(["git", "add", "."])
    old.write_text(old.read_text() + "Not staged: tom.smith@example.com\n")
    return machine


FOUND = ["data/a b.md:5: EMAIL", "data/ü.txt:2: IP_ADDRESS"]


def test_added_lines_are_named_and_never_quoted(
    repository: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder)
    files = ["data/a b.md", "data/ü.txt"]
    assert detect_staged(["--exclude=DATE", *files]) == 1
    assert capfd.readouterr() == ("\n".join([*FOUND, ""]), "")
    assert detect_staged(["--exclude=EMAIL,IP_ADDRESS,PERSON", *files]) == 0
    for wrong in (["--exclude=NO_SUCH_LABEL", *files], ["--exclude", "data/a b.md", *files]):
        assert detect_staged(wrong) == 2
        printed, said = capfd.readouterr()
        assert (printed, len(said.splitlines())) == ("", 1)


@pytest.mark.ci
def test_the_hook_runs_on_staged_text_in_its_folder(repository: Machine) -> None:
    ended = run_hook(HOOKS, "atdp-detect", repository)
    assert ended is not None
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (1, FOUND, "")
    repository.run(["git", "rm", "-rqf", "--cached", "data"])
    assert run_hook(HOOKS, "atdp-detect", repository) is None


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
