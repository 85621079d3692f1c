"""`atdp harden` in several processes: one model, one ledger, one message; and what a death among them leaves."""

import json
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from atdp_cli.errors import UsageError
from atdp_cli.privacy.ledger import LedgerEvent, read_verified
from atdp_cli.runs.resume import steps_of
from atdp_cli.training.distributed.torchrun import process_group
from tests.cli.test_harden import PRIVATE_FILES
from tests.crashing import OUT, PATIENCE, ended, lines_of, run_here, server, wait_for
from tests.runs.test_kills import STEPS, command
from tests.training.ranked import free_port


def run_rank(rank: int, size: int, port: int, line: list[str], folder: str) -> None:
    """The body of a process, as torchrun would start it."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    run_here(line, f"{folder}/witness-{rank}", f"{folder}/log-{rank}")


def started(size: int, arguments: Sequence[object], folder: Path) -> list["multiprocessing.process.BaseProcess"]:
    """The processes of a run that writes `out` in a folder; what each says is in `log-RANK`."""
    line, port = [str(one) for one in arguments] + ["-o", str(folder / OUT)], free_port()
    processes: list[multiprocessing.process.BaseProcess] = [
        server().Process(target=run_rank, args=(rank, size, port, line, str(folder))) for rank in range(size)
    ]
    for process in processes:
        process.start()
    return processes


def said(folder: Path, size: int) -> list[str]:
    """What each process has said, for people or as its result."""
    return [(folder / f"log-{rank}").read_text() for rank in range(size)]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / OUT / "model.safetensors")


def spent(folder: Path) -> list[LedgerEvent]:
    """What the ledger has, whichever run it was."""
    ledger = read_verified(folder / OUT / "privacy_ledger.json")
    return [event.model_copy(update={"run": None}) for event in ledger.events]


@pytest.fixture
def line(checkpoint_folder: Path, corpus: Path, span_file: Path) -> list[object]:
    """24 steps of the small checkpoint that are the same whenever they are taken."""
    return [*command(checkpoint_folder, corpus, span_file), "--insecure-seed", 1, "--dtype", "float32"]


@pytest.mark.ci
@pytest.mark.parametrize("sharded", [False, True])
def test_two_processes_write_the_model_of_one(line: list[object], tmp_path: Path, sharded: bool) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    more: list[object] = ["--shard-model"] if sharded else []
    assert [ended(process) for process in started(1, line, one)] == [0]
    assert [ended(process) for process in started(2, [*line, *more], two)] == [0, 0], said(two, 2)
    for name, expected in weights(one).items():
        torch.testing.assert_close(weights(two)[name], expected, rtol=1e-5, atol=1e-5)
    assert {path.name for path in (two / f"{OUT}.private").iterdir()} == PRIVATE_FILES
    assert spent(two) == spent(one)
    first, second = said(two, 2)
    assert first.strip() == str(two / OUT)
    assert second == ""
    assert {path.name for path in two.iterdir()} == {OUT, f"{OUT}.private", "log-0", "log-1", "witness-0", "witness-1"}


@pytest.mark.ci
@pytest.mark.parametrize("size_after", [1, pytest.param(3, marks=pytest.mark.ci)])
def test_a_dead_process_ends_the_run_with_one_message_and_others_go_on(
    line: list[object], tmp_path: Path, size_after: int
) -> None:
    private = [one for one in line if one not in ("--insecure-seed", 1)]
    processes = started(2, private, tmp_path)
    root = tmp_path / f"{OUT}.partial"
    wait_for(lambda: lines_of(root) > 5 or not processes[0].is_alive())
    processes[1].kill()
    assert ended(processes[0]) == 3
    processes[1].join(PATIENCE)
    told = said(tmp_path, 2)
    assert told[0].count("atdp: ") == 1
    assert "Another process of this run has ended." in told[0]
    assert "Resume with: " in told[0]
    assert "Traceback" not in "".join(told)
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(OUT)} == {root.name}
    taken = (tmp_path / "witness-0").stat().st_size
    assert lines_of(root) >= taken

    codes = [ended(process) for process in started(size_after, [*private, "--resume"], tmp_path)]
    assert codes == [0] * size_after, said(tmp_path, size_after)
    ledger = read_verified(tmp_path / OUT / "privacy_ledger.json")
    report = json.loads((tmp_path / f"{OUT}.private" / "privacy_report.json").read_text())
    assert steps_of(ledger.events) == STEPS + report["public"]["repeated_steps"]
    assert steps_of(ledger.events) >= (tmp_path / "witness-0").stat().st_size


@pytest.mark.ci
def test_processes_that_were_given_different_corpora_refuse_with_one_message(
    line: list[object], corpus: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    lines = corpus.read_text().splitlines()
    other.write_text("\n".join([*lines[:10], lines[11], lines[10], *lines[12:]]) + "\n")
    port = free_port()
    processes = []
    for rank, data in enumerate((corpus, other)):
        arguments = [str(data if one == corpus else one) for one in line]
        arguments = [one for one in arguments if one != "--spans"]
        arguments.remove(str(line[line.index("--spans") + 1]))
        arguments += ["-o", str(tmp_path / OUT)]
        process = server().Process(target=run_rank, args=(rank, 2, port, arguments, str(tmp_path)))
        process.start()
        processes.append(process)
    assert {ended(process) for process in processes} == {3}
    told = "".join(said(tmp_path, 2))
    assert told.count("atdp: ") == 1
    assert "was given another run than process 0" in told
    assert not list(tmp_path.glob(f"{OUT}*"))


def test_a_refusal_that_all_share_is_said_once(line: list[object], tmp_path: Path) -> None:
    codes = [ended(process) for process in started(3, [*line, "--auto", "--minutes", 1], tmp_path)]
    assert codes == [2, 2, 2]
    told = "".join(said(tmp_path, 3))
    assert told == "atdp: --auto chooses the recipe that --recipe names. Leave one of them out.\n"


def test_a_model_is_not_parted_among_one_process() -> None:
    with pytest.raises(UsageError, match="there is one"), process_group(sharded=True, environment={}):
        pass


@pytest.mark.parametrize("variable", ["WORLD_SIZE", "LOCAL_RANK"])
def test_variables_that_are_no_numbers_are_refused(variable: str) -> None:
    with pytest.raises(UsageError, match="is not a number"), process_group(environment={variable: "many"}):
        pass
