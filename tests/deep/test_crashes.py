"""A hundred kills from outside, disks that fill up, files that cannot be read: no step goes uncounted, no run is lost.

`make test` has ten kills (`tests/hardening/test_kills.py`).
"""

import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atdp_cli.hardening.resume import steps_of
from atdp_cli.hardening.workspace import checkpoint_numbers
from atdp_cli.privacy.ledger import read_verified
from tests.cli.test_harden import PRIVATE_FILES
from tests.crashing import MOMENTS, OUT, ended, lines_of, spent_lines, started, taken, wait_for
from tests.hardening.test_kills import STEPS, check_done, check_loads, command, kill_often

pytestmark = pytest.mark.deep


def test_a_hundred_kills(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path) -> None:
    seen = kill_often(command(checkpoint_folder, corpus, span_file), tmp_path, kills=100, each=6, seed=2)
    assert seen.kills == 100
    # Each moment that matters was met, and left what it is waited for.
    assert all(seen.moments[name] >= 5 for name in MOMENTS), seen.moments
    for kind in ("half a state", "a line without its step", "a part of the model", "all was written"):
        assert seen.left[kind] >= 1, seen.left


def test_kills_under_a_limit_of_epsilon(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path) -> None:
    """What is lost cannot be had twice: the run ends earlier, and never above its target."""
    line = command(checkpoint_folder, corpus, span_file, "--target-epsilon", 3)
    seen = kill_often(line, tmp_path, kills=30, each=3, seed=3, limit=3.0)
    assert seen.kills == 30


CHAINS = ("no-dp+atdp", "fitted-decoys", "redacted+dp-sgd+noise")


@pytest.mark.parametrize("recipe", CHAINS)
def test_kills_of_chains(checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, recipe: str) -> None:
    """Steps without noise have no lines, so it is the end that is looked at."""
    dice, kills = random.Random(4), 0
    data = ["--data", corpus, "--spans", span_file, "--tier", "low-entity", "--max-records", 60]
    line = [
        "harden",
        checkpoint_folder,
        *data,
        "--recipe",
        recipe,
        "--epochs",
        4,
        "--set",
        "run.checkpoint-every=1e-4",
        "-q",
    ]
    while kills < 10:
        process = started([*line, "--resume"], tmp_path)
        process.join(dice.uniform(0, 6))
        if process.exitcode is None:
            process.kill()
            kills += 1
        if ended(process) == 0:
            shutil.rmtree(tmp_path / OUT)
            shutil.rmtree(tmp_path / f"{OUT}.private")
    assert ended(started([*line, "--resume"], tmp_path)) == 0, (tmp_path / "log").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {OUT, f"{OUT}.private", "witness", "log"}
    assert {path.name for path in (tmp_path / f"{OUT}.private").iterdir()} == PRIVATE_FILES
    check_loads(tmp_path / OUT)


MEGABYTES = 48


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """A small file system, or a skip where none can be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, kilobytes: int) -> Path:
    """A file that leaves so much room."""
    path = folder / "filler"
    path.write_bytes(bytes(shutil.disk_usage(folder).free - 1024 * kilobytes))
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
def test_a_disk_that_fills_up_under_a_run(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path
) -> None:
    """A real file system on which somebody else leaves so little that any of its writes can be the one too many."""
    line, codes, dice = command(checkpoint_folder, corpus, span_file), Counter[int](), random.Random(6)
    for kilobytes in [0, 4, 8, 16, 64, *range(100, 1600, 100)]:
        beside = tmp_path / f"{kilobytes}"
        beside.mkdir()
        with disk(beside / "disk") as folder:
            root, process, begins = folder / f"{OUT}.partial", None, dice.randint(0, 12)
            process = started(line, folder, beside=beside)
            wait_for(lambda root=root, begins=begins: lines_of(root) >= begins and (root / "run.json").exists())  # type: ignore[misc]
            filler = fill(folder, kilobytes)
            code = ended(process)
            codes[code] += 1
            said = (beside / "log").read_text()
            assert code in (0, 3), said
            assert "unexpected" not in said
            assert (folder / OUT).exists() == (code == 0)
            if root.exists():
                assert spent_lines(root) >= taken(beside / "witness")
            elif code:
                (beside / "witness").unlink()  # Nothing was kept of it, so it begins with nothing spent.
            filler.unlink()
            assert ended(started([*line, "--resume"], folder, beside=beside)) == 0, (beside / "log").read_text()
            check_done(folder, 1, beside=beside)
    assert codes[3] >= 5, codes
    assert codes[0] >= 1, codes


UNREADABLE = ("run.json", "journal.jsonl", "newest/state.json", "newest/tensors-000.safetensors", "corpus")
CODE = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_ends_the_run_or_the_state_before_it_is_taken(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, name: str
) -> None:
    """The kernel answers every read of the file with EIO."""
    line = command(checkpoint_folder, corpus, span_file)
    process, root = started(line, tmp_path), tmp_path / f"{OUT}.partial"
    wait_for(lambda: len(checkpoint_numbers(root)) == 2 and lines_of(root) > 5)
    process.kill()
    ended(process)
    path = corpus if name == "corpus" else root / name.replace("newest", f"state-{checkpoint_numbers(root)[0]}")
    injected = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(path), "-e", "inject=read,pread64:error=EIO"]
    done = subprocess.run(
        [*injected, sys.executable, "-c", CODE, *map(str, line), "-o", str(tmp_path / OUT), "--resume"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unexpected" not in done.stderr
    if name.startswith("newest"):
        assert done.returncode == 0, done.stderr
        assert steps_of(read_verified(tmp_path / OUT).events) >= STEPS
    else:
        assert done.returncode in (2, 3), done.stderr
        assert not (tmp_path / OUT).exists()
        assert ended(started([*line, "--resume"], tmp_path)) == 0
    if name.startswith("newest"):
        check_loads(tmp_path / OUT)
    else:
        check_done(tmp_path, 1)
