"""`harden --resume` as people and schedulers use it: signals, a second run, a disk that is full."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from atdp_cli.hardening.resume import steps_of
from atdp_cli.privacy.ledger import read_verified
from tests.cli.conftest import Atdp
from tests.crashing import OUT, ended, lines_of, spent_lines, started, taken, wait_for
from tests.hardening.test_kills import STEPS, check_done, command


@pytest.fixture
def line(checkpoint_folder: Path, corpus: Path, span_file: Path) -> list[object]:
    """A run of 24 steps that saves nothing by itself."""
    return [*command(checkpoint_folder, corpus, span_file), "--set", "run.checkpoint-every=0"]


@pytest.mark.ci
@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)])
def test_a_signal_ends_the_run_after_its_step_and_says_how_to_go_on(
    line: list[object], tmp_path: Path, stop: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    process = started(line, tmp_path)
    wait_for(lambda: lines_of(tmp_path / f"{OUT}.partial") >= 3)
    assert process.pid is not None
    os.kill(process.pid, stop)
    assert ended(process) == 130
    assert spent_lines(tmp_path / f"{OUT}.partial") == taken(tmp_path / "witness") < STEPS
    said = (tmp_path / "log").read_text().splitlines()
    assert said[-2] == "atdp: stopping after this step; once more to stop at once."
    assert f"{OUT}.partial keeps its last state" in said[-1]
    reported = said[-1].partition("Resume with: ")[2]
    assert run(shlex.split(reported)[1:]) == 0
    assert steps_of(read_verified(tmp_path / OUT).events) == STEPS
    assert {path.name for path in tmp_path.iterdir()} == {OUT, f"{OUT}.private", "witness", "log"}
    assert run([part for part in shlex.split(reported)[1:] if part not in ("-q", "--quiet")]) == 0
    assert f"{OUT} is finished: nothing is left to resume." in capsys.readouterr().err


@pytest.mark.ci
def test_two_signals_end_it_at_once_and_it_can_be_resumed(line: list[object], tmp_path: Path) -> None:
    process = started(line, tmp_path)
    wait_for(lambda: lines_of(tmp_path / f"{OUT}.partial") >= 2)
    assert process.pid is not None
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 130
    process = started([*line, "--resume"], tmp_path)
    assert ended(process) == 0, (tmp_path / "log").read_text()
    check_done(tmp_path, 1)


@pytest.mark.ci
@pytest.mark.parametrize(
    "more", [[], *(pytest.param([option], marks=pytest.mark.deep) for option in ("--force", "--resume"))]
)
def test_a_second_run_on_one_output_is_refused(atdp: Atdp, line: list[object], tmp_path: Path, more: list[str]) -> None:
    process = started(line, tmp_path)
    wait_for(lambda: lines_of(tmp_path / f"{OUT}.partial") >= 1)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)  # It shall not end while the other looks.
    second = atdp(*line, "-o", tmp_path / OUT, *more)
    os.kill(process.pid, signal.SIGCONT)
    assert second.code == 2
    assert f"in use by process {process.pid} on " in second.err
    assert ended(process) == 0
    check_done(tmp_path, 0)


@pytest.mark.ci
@pytest.mark.parametrize(
    "room", [*(pytest.param(room, marks=pytest.mark.deep) for room in (100, 2_000, 120_000, 400_000)), 60_000]
)
def test_a_disk_that_is_full_at_any_file_leaves_what_can_be_resumed(
    checkpoint_folder: Path, corpus: Path, span_file: Path, tmp_path: Path, room: int
) -> None:
    """The kernel itself lets no file grow beyond so many bytes: record, journal, reports, weights, states."""
    line = command(checkpoint_folder, corpus, span_file)
    code = ended(started(line, tmp_path, room=room))
    said = (tmp_path / "log").read_text()
    assert code in (0, 3), said
    assert "unexpected" not in said
    if code == 0:
        assert "state: not saved (File too large)" in said or room >= 400_000
    else:
        assert not (tmp_path / OUT).exists()
        assert "atdp: " in said
    left = tmp_path / f"{OUT}.partial"
    if left.exists():
        assert spent_lines(left) >= taken(tmp_path / "witness")
    assert ended(started([*line, "--resume"], tmp_path)) == 0, (tmp_path / "log").read_text()
    if left.exists() or code == 0:
        check_done(tmp_path, 1)
