"""How `atdp audit-canary` ends when something goes wrong: 0 and 1 are verdicts, so neither may follow from an accident.

The models here fail their audit (exit 1) when nothing is wrong with them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from atdp_cli.audit import trie
from tests.cli.conftest import Atdp, Leaky

WEIGHTS = "model.safetensors"
CODE = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"

Damage = Callable[[Path], None]


@pytest.fixture
def model(leaky: Leaky, tmp_path: Path) -> Path:
    """A copy of a model that fails."""
    return Path(shutil.copytree(leaky.model, tmp_path / "model"))


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on GitHub, even where these tests run there."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


# --- The checkpoint is damaged


def cut(kept: float) -> Damage:
    """The weights' file ends early, as after a full disk or a broken download."""

    def damage(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[: int(kept * len(content))])

    return damage


def value(number: float) -> Damage:
    """One weight is this number."""

    def damage(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        tensors["transformer.h.1.mlp.c_fc.weight"][3, 3] = number
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        unseal(folder)

    return damage


def overflow(folder: Path) -> None:
    """Every weight is finite, and no logit is: the squares of a layer norm overflow."""
    tensors = load_file(folder / WEIGHTS)
    tensors["transformer.wte.weight"][:, ::2] = 1e25
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    unseal(folder)


def unseal(folder: Path) -> None:
    """Without the ledger, whose seal no longer fits."""
    (folder / "privacy_ledger.json").unlink()


DAMAGES: dict[str, Damage] = {
    "cut in half": cut(0.5),
    "NaN": value(float("nan")),
    "NaN logits": overflow,
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_among_others_is_an_error(atdp: Atdp, model: Path, leaky: Leaky, name: str) -> None:
    DAMAGES[name](model)
    ended = atdp("audit-canary", leaky.model, model, "--manifest", leaky.manifest, "--json")
    assert ended.code == 3, ended.err
    assert [entry["verdict"] for entry in ended.json["models"]] == ["FAIL", "ERROR"]


# --- The manifest is for another tokenizer


def swapped(folder: Path) -> None:
    """The same vocabulary, with the numbers of two digits exchanged."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["0"], vocabulary["9"] = vocabulary["9"], vocabulary["0"]
    path.write_text(json.dumps(content))


def lacking(folder: Path) -> None:
    """One merge less, which none of the canaries may need."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["merges"].pop()
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("change", [swapped, lacking])
def test_a_manifest_for_another_tokenizer_is_inconclusive(
    atdp: Atdp, model: Path, leaky: Leaky, change: Damage
) -> None:
    change(model)
    ended = atdp("audit-canary", model, "--manifest", leaky.manifest, "--json")
    assert ended.code == 4, ended.err
    assert "oken" in ended.json["models"][0]["reasons"][0]


# --- The program breaks off


class Panic(BaseException):
    """What a panic of a Rust library is to Python: no `Exception`."""


ACCIDENTS: tuple[tuple[BaseException, int], ...] = (
    (KeyError("k"), 3),
    (RecursionError(), 3),
    (OSError(5, "Input/output error"), 3),
    (BrokenPipeError(), 3),
    (MemoryError(), 3),
    (torch.OutOfMemoryError("out of memory"), 3),
    (Panic("panicked"), 3),
    (SystemExit(0), 3),
    (SystemExit(1), 3),
    (KeyboardInterrupt(), 130),
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("accident", "code"), ACCIDENTS, ids=[repr(accident) for accident, _ in ACCIDENTS])
def test_whatever_is_raised_while_scoring_is_no_verdict(
    atdp: Atdp, leaky: Leaky, monkeypatch: pytest.MonkeyPatch, accident: BaseException, code: int
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise accident

    monkeypatch.setattr(trie, "_expand", broken)
    for models in ([leaky.model], [leaky.model] * 2):
        ended = atdp("audit-canary", *models, "--manifest", leaky.manifest, "--json")
        assert ended.code == code, ended.err


def audit(leaky: Leaky, *more: object) -> list[str]:
    """The arguments of an audit that fails."""
    return [str(part) for part in ("audit-canary", leaky.model, "--manifest", leaky.manifest, *more)]


MEBIBYTE = 2**20


@pytest.mark.ci
def test_without_enough_memory_there_is_the_right_verdict_or_none(leaky: Leaky) -> None:
    """The system itself refuses memory: beyond what the libraries take, this much is left for the audit."""
    code = (
        "import resource, sys\n"
        "import torch, transformers, numpy, typer, rich.progress\n"
        "from transformers import AutoModelForCausalLM, GPT2LMHeadModel\n"
        "from atdp_cli.cli.app import run\n"
        "torch.set_num_threads(1)\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        f"limit = pages * resource.getpagesize() + int(sys.argv[1]) * {MEBIBYTE}\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "sys.exit(run(sys.argv[2:]))\n"
    )
    ended_with = {}
    for room in (2, 48, 4096):
        done = subprocess.run(
            [sys.executable, "-c", code, str(room), *audit(leaky, "--json")],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
        )
        ended_with[room] = done.returncode
        assert done.returncode != 0
        if done.returncode == 1:
            assert json.loads(done.stdout)["models"][0]["verdict"] == "FAIL", done.stderr
    assert ended_with[4096] == 1, ended_with
    assert ended_with[2] != 1, ended_with


@pytest.mark.ci
@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGINT], 130),
        pytest.param([signal.SIGINT] * 3, 130, marks=pytest.mark.deep),
        ([signal.SIGTERM], -signal.SIGTERM),
    ],
    ids=["interrupted", "interrupted three times", "terminated"],
)
def test_a_signal_while_scoring_ends_it_without_a_verdict(
    leaky: Leaky, signals: list[signal.Signals], code: int
) -> None:
    # Whoever runs the tests in the background may have them ignore the interrupt.
    program = (
        "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from atdp_cli.audit import trie\n"
        "def slow(*_, **__):\n"
        "    print('scoring', file=sys.stderr, flush=True)\n"
        "    time.sleep(600)\n"
        "trie._expand = slow\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program + CODE, *audit(leaky, "--json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    said = ""
    while "scoring\n" not in said:
        line = running.stderr.readline()
        assert line, said
        said += line
    for sent in signals:
        running.send_signal(sent)
    out, _ = running.communicate(timeout=60)
    # A second interrupt may hit Python itself on its way out, which then dies of it: 130 to a shell.
    assert running.returncode in ({code} if len(signals) == 1 else {code, -signal.SIGINT})
    assert out == ""


# --- Nobody hears the verdict


def closed_pipe() -> int:
    """A pipe that nobody reads, as of `| head -0`."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full_disk() -> int:
    """A file on a full disk."""
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(
    ("sink", "more"),
    [
        pytest.param(closed_pipe, ["--json"], marks=pytest.mark.ci),
        pytest.param(full_disk, [], marks=pytest.mark.ci),
        pytest.param(closed_pipe, [], marks=pytest.mark.deep),
        pytest.param(full_disk, ["--json"], marks=pytest.mark.deep),
    ],
)
def test_a_verdict_that_cannot_be_written_is_none(leaky: Leaky, sink: Callable[[], int], more: list[str]) -> None:
    target = sink()
    command = [sys.executable, "-c", CODE, *audit(leaky, *more)]
    try:
        done = subprocess.run(command, stdout=target, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(target)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("sink", [closed_pipe, full_disk])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["audit-canary", "nowhere", "--canary", "ID 12"], id="unreadable", marks=pytest.mark.ci),
        pytest.param(["audit-canary", "--frobnicate"], id="usage"),
    ],
)
def test_an_error_that_cannot_be_said_is_no_failed_audit(
    tmp_path: Path, sink: Callable[[], int], arguments: list[str]
) -> None:
    target = sink()
    try:
        command = [sys.executable, "-c", CODE, *arguments]
        done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=target, check=False)
    finally:
        os.close(target)
    assert done.returncode in (2, 3)
