"""One process at a time: another is told who has the folder, and a dead one has nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atdp_cli.errors import UsageError
from atdp_cli.files.private import LOCK_FILE, check_free, locked

HOLD = """
import sys, os
from pathlib import Path
from atdp_cli.files.private import locked
with locked(Path(sys.argv[1])):
    if len(sys.argv) > 2 and os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the folder."""
    running = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdin is not None
    assert running.stdout.readline() == "held\n"
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdin.close()
        running.stdout.close()


def test_a_second_process_hears_who_has_the_folder(tmp_path: Path) -> None:
    with holder(tmp_path / "o.partial") as running:
        reported = f"in use by process {running.pid} on {os.uname().nodename} since 20"
        with pytest.raises(UsageError, match=reported), locked(tmp_path / "o.partial"):
            pass
        with pytest.raises(UsageError, match=reported):
            check_free(tmp_path / "o.partial")
    check_free(tmp_path / "o.partial")


def test_what_is_killed_has_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as running:
        running.kill()
        running.wait()
        with locked(tmp_path):
            assert str(os.getpid()) in (tmp_path / LOCK_FILE).read_text()


def test_a_process_of_the_detector_that_outlives_its_run_has_nothing(tmp_path: Path) -> None:
    """It was forked, as the detector's are, and holds the file open."""
    with holder(tmp_path, "fork") as running:
        running.kill()
        running.wait()
        with locked(tmp_path):
            pass


def test_nobody_has_a_folder_that_is_not_there(tmp_path: Path) -> None:
    check_free(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    check_free(tmp_path / "empty")


def test_a_folder_that_is_removed_by_the_one_before_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the opening of the file and its lock."""
    folder = tmp_path / "o.partial"
    removed: list[bool] = []
    original = os.open

    def opened(path: object, *arguments: int, **settings: int) -> int:
        handle = original(path, *arguments, **settings)  # type: ignore[arg-type]
        if not removed:
            (folder / LOCK_FILE).unlink()
            folder.rmdir()
            removed.append(True)
        return handle

    monkeypatch.setattr(os, "open", opened)
    with locked(folder):
        monkeypatch.undo()
        assert (folder / LOCK_FILE).exists()
        child = subprocess.run(
            [sys.executable, "-c", HOLD, str(folder)], capture_output=True, text=True, check=False, input=""
        )
        assert "in use by process" in child.stderr
