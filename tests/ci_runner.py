"""Does what the files for a CI say: GitHub's workflows and composite actions, GitLab's jobs, the hooks of pre-commit.

As much of it as the files here use. What it does not know, such as another expression or key, is an error.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent

SERVICE = {"actions/checkout", "actions/setup-python", "github/codeql-action/upload-sarif"}
"""Actions of the service itself; only what they are given is looked at."""

_GITHUB = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
_GITLAB = re.compile(r"\$\[\[ *inputs\.([\w-]+) *\]\]")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where steps run: a folder, and the environment of its processes."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        settings = {**self.environment, **more}
        return subprocess.run(command, cwd=self.folder, env=settings, capture_output=True, text=True, check=False)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a job ended: with its exit code, the output of all that ran, the outputs of its steps, what services got."""

    code: int
    err: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def load(path: Path) -> list[Any]:
    """The documents of a YAML file. YAML reads the key `on` as true."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def github_workflow(path: Path, job: str, machine: Machine, known: Mapping[str, str]) -> Ended:
    """Run a job of a workflow.

    Args:
        known: Values of expressions, such as secrets.NAME.
    """
    [workflow] = load(path)
    names, code, err, services = dict(known), 0, "", {}
    for step in workflow["jobs"][job]["steps"]:
        assert step.keys() <= {"uses", "with", "id", "if"}, step
        given = {name: _github(value, names) for name, value in step.get("with", {}).items()}
        action = step["uses"].partition("@")[0]
        if action == "OWNER/atdp":
            ended = composite_action(ROOT, given, machine)
            code, err = ended.code, ended.err
            names |= {f"steps.{step['id']}.outputs.{name}": value for name, value in ended.outputs.items()}
        else:
            assert action in SERVICE, action
            assert code == 0 or "!cancelled()" in step["if"]
            services[action] = given
    return Ended(code=code, err=err, services=services)


def composite_action(folder: Path, given: Mapping[str, str], machine: Machine) -> Ended:
    """Run the action of a folder with these inputs; it stops after a step that fails."""
    [action] = load(folder / "action.yml")
    assert action["runs"]["using"] == "composite"
    assert given.keys() <= action["inputs"].keys()
    assert all(name in given or "default" in each or not each["required"] for name, each in action["inputs"].items())
    inputs = {name: given.get(name, each.get("default", "")) for name, each in action["inputs"].items()}
    names = {f"inputs.{name}": value for name, value in inputs.items()}
    code, err = 0, ""
    for number, step in enumerate(action["runs"]["steps"]):
        assert step.keys() <= {"name", "id", "shell", "env", "run"}
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "a value in the text of a script is run"
        script, written = machine.folder / f".step-{number}.sh", machine.folder / f".outputs-{number}"
        script.write_text(step["run"])
        written.touch()
        settings = {name: _github(value, names) for name, value in step.get("env", {}).items()}
        files = {"GITHUB_ACTION_PATH": str(folder), "GITHUB_OUTPUT": str(written)}
        ended = machine.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], **files, **settings)
        code, err = ended.returncode, err + ended.stderr
        for line in written.read_text().splitlines():
            name, _, value = line.partition("=")
            names[f"steps.{step['id']}.outputs.{name}"] = value
        if code:
            break
    outputs = {name: names.get(_GITHUB.sub(r"\1", each["value"]), "") for name, each in action["outputs"].items()}
    return Ended(code=code, err=err, outputs=outputs)


def _github(text: object, names: Mapping[str, str]) -> str:
    return _GITHUB.sub(lambda match: names[match[1]], str(text))


def gitlab_job(path: Path, job: str) -> dict[str, Any]:
    """A job of a pipeline that includes a template of ours, its inputs filled in."""
    [pipeline] = load(path)
    [include] = pipeline["include"]
    header, template = load(ROOT / include["file"].lstrip("/"))
    declared, given = header["spec"]["inputs"], include["inputs"]
    assert given.keys() <= declared.keys()
    values = {name: given[name] if name in given else each["default"] for name, each in declared.items()}
    filled: dict[str, Any] = _filled(template[job], values)
    return filled


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _GITLAB.sub(lambda match: values[match[1]], value)
        case list():
            return [_filled(each, values) for each in value]
        case dict():
            return {name: _filled(each, values) for name, each in value.items()}
    return value


def gitlab_run(job: Mapping[str, Any], machine: Machine, **variables: str) -> Ended:
    """Run a job's scripts in one shell, as the service does."""
    script = "\n".join([*job.get("before_script", []), *job["script"]])
    ended = machine.run(["bash", "-eo", "pipefail", "-c", script], **variables)
    return Ended(code=ended.returncode, err=ended.stderr)


def hook_command(config: Path, name: str) -> tuple[list[str], re.Pattern[str], dict[str, Any]]:
    """A hook of a configuration: its command before names of files, the files that it is for, and all that is said."""
    [document], [known] = load(config), load(ROOT / ".pre-commit-hooks.yaml")
    [repository] = document["repos"]
    [given] = [each for each in repository["hooks"] if each["id"] == name]
    [declared] = [each for each in known if each["id"] == name]
    hook = declared | given
    return [*shlex.split(hook["entry"]), *hook.get("args", [])], re.compile(hook.get("files", "")), hook


def run_hook(config: Path, name: str, machine: Machine) -> subprocess.CompletedProcess[str] | None:
    """Run a hook over what is staged in the machine's folder; None where no staged file is for it."""
    command, files, hook = hook_command(config, name)
    listed = machine.run(["git", "diff", "--staged", "--name-only", "--diff-filter=ACMRTUXB", "-z"])
    staged = [file for file in listed.stdout.split("\0") if file and files.search(file)]
    if "text" in hook.get("types", []):
        staged = [file for file in staged if b"\0" not in (machine.folder / file).read_bytes()]
    if not staged:
        return None
    return machine.run([*command, *(staged if hook.get("pass_filenames", True) else [])])


def machine_with(programs: Path, folder: Path, **more: str) -> Machine:
    """A machine whose `python` and `atdp` are in a folder of programs; nothing of this process' CI is in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PYTHON", "GIT_"))}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return Machine(folder=folder, environment={**kept, "PATH": path, "OMP_NUM_THREADS": "1", **more})
