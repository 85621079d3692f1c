"""`atdp harden` in several processes: one model, one ledger, one message; and what a death among them leaves."""

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch._C._distributed_c10d import TCPStore

from atdp_cli.errors import UsageError
from atdp_cli.hardening.resume import steps_of
from atdp_cli.privacy.ledger import LedgerEvent, read_verified
from atdp_cli.training.parallel.ranks import process_group
from tests.cli.test_harden import PRIVATE_FILES
from tests.crashing import OUT, PATIENCE, ended, lines_of, run_here, server, wait_for
from tests.hardening.test_kills import STEPS, command

Processes = list["multiprocessing.process.BaseProcess"]
StartedWith = Callable[[Sequence[Sequence[object]], Path], Processes]
Started = Callable[[int, Sequence[object], Path], Processes]


def run_rank(rank: int, size: int, port: int, line: list[str], folder: str) -> None:
    """The body of a process, as torchrun would start it; the store is another process's, as torchrun's is."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    run_here(line, f"{folder}/witness-{rank}", f"{folder}/log-{rank}")


@pytest.fixture
def started_with() -> StartedWith:
    """Starts the processes of a run, one for each command line, that write `out` in a folder.

    What each says is in `log-RANK`.
    """
    stores = []

    def start(lines: Sequence[Sequence[object]], folder: Path) -> Processes:
        store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        stores.append(store)
        processes: Processes = []
        for rank, line in enumerate(lines):
            arguments = [*map(str, line), "-o", str(folder / OUT)]
            settings = (rank, len(lines), store.port, arguments, str(folder))
            processes.append(server().Process(target=run_rank, args=settings))
        for process in processes:
            process.start()
        return processes

    return start


@pytest.fixture
def started(started_with: StartedWith) -> Started:
    """Starts so many processes with one command line."""
    return lambda size, arguments, folder: started_with([arguments] * size, folder)


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
    return [
        *command(checkpoint_folder, corpus, span_file),
        "--set",
        "run.insecure-seed=1",
        "--set",
        "run.save-dtype=float32",
    ]


@pytest.mark.deep
@pytest.mark.parametrize("sharded", [pytest.param(False, marks=pytest.mark.deep), True])
def test_two_processes_write_the_model_of_one(
    started: Started, line: list[object], tmp_path: Path, sharded: bool
) -> None:
    alone, sharing = tmp_path / "one", tmp_path / "two"
    alone.mkdir()
    sharing.mkdir()
    more: list[object] = ["--set", "run.shard-model=true"] if sharded else []
    assert [ended(process) for process in started(1, line, alone)] == [0]
    assert [ended(process) for process in started(2, [*line, *more], sharing)] == [0, 0], said(sharing, 2)
    for name, expected in weights(alone).items():
        torch.testing.assert_close(weights(sharing)[name], expected, rtol=1e-5, atol=1e-5)
    assert {path.name for path in (sharing / f"{OUT}.private").iterdir()} == PRIVATE_FILES
    assert spent(sharing) == spent(alone)
    first, second = said(sharing, 2)
    assert first.strip() == str(sharing / OUT)
    assert second == ""
    assert {path.name for path in sharing.iterdir()} == {
        OUT,
        f"{OUT}.private",
        "log-0",
        "log-1",
        "witness-0",
        "witness-1",
    }


@pytest.mark.ci
@pytest.mark.parametrize("size_after", [pytest.param(1, marks=pytest.mark.deep), 3])
def test_a_dead_process_ends_the_run_with_one_message_and_others_go_on(
    started: Started, line: list[object], tmp_path: Path, size_after: int
) -> None:
    seed = line.index("run.insecure-seed=1")
    private = [*line[: seed - 1], *line[seed + 1 :]]
    processes = started(2, private, tmp_path)
    root = tmp_path / f"{OUT}.partial"
    wait_for(lambda: lines_of(root) > 5 or not processes[0].is_alive())
    processes[1].kill()
    assert ended(processes[0]) == 3
    processes[1].join(PATIENCE)
    reported = said(tmp_path, 2)
    assert reported[0].count("atdp: ") == 1
    assert "Another process of this run has ended." in reported[0]
    assert "Resume with: " in reported[0]
    assert "Traceback" not in "".join(reported)
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
    started_with: StartedWith, line: list[object], corpus: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    lines = corpus.read_text().splitlines()
    other.write_text("\n".join([*lines[:10], lines[11], lines[10], *lines[12:]]) + "\n")
    spans = line.index("--spans")
    without_spans = [*line[:spans], *line[spans + 2 :]]
    lines_of_ranks = [
        [other if rank and without_span == corpus else without_span for without_span in without_spans]
        for rank in range(2)
    ]
    processes = started_with(lines_of_ranks, tmp_path)
    assert {ended(process) for process in processes} == {3}
    reported = "".join(said(tmp_path, 2))
    assert reported.count("atdp: ") == 1
    assert "was given another run than process 0" in reported
    assert not list(tmp_path.glob(f"{OUT}*"))


@pytest.mark.ci
def test_a_refusal_that_all_share_is_said_once(started: Started, line: list[object], tmp_path: Path) -> None:
    codes = [ended(process) for process in started(3, [*line, "--recipe", "atdp", "--tune", "quick"], tmp_path)]
    assert codes == [2, 2, 2]
    reported = "".join(said(tmp_path, 3))
    assert reported == (
        "atdp: --tune needs a last stage on decoys and no DP stage; recipe atdp is another. Leave --tune out, or use "
        "--recipe fitted-decoys.\n"
    )


def test_a_model_is_not_parted_among_one_process() -> None:
    with pytest.raises(UsageError, match="there is one"), process_group(sharded=True, environment={}):
        pass


@pytest.mark.parametrize("variable", ["WORLD_SIZE", "LOCAL_RANK"])
def test_variables_that_are_no_numbers_are_refused(variable: str) -> None:
    with pytest.raises(UsageError, match="is not a number"), process_group(environment={variable: "many"}):
        pass
