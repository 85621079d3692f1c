"""A finished run gets its names whatever happens while it does: death at every call that changes a folder."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.private import LOCK_FILE
from atdp_cli.hardening.workspace import (
    RECORD_FILE,
    Finished,
    RunRecord,
    Workspace,
    check_output,
    finish,
    publish,
    read_record,
    workspace,
)

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"}
DEAD = 9


def opened(folder: Path, *, resume: bool = False) -> AbstractContextManager[Workspace]:
    """A run that writes `out` in a folder."""
    return workspace(folder / "out", {"records": "1"}, b"", force=False, resume=resume)


def unfinished(root: Path) -> Workspace:
    """A run that has written all."""
    work = Workspace(root=root)
    (root / "model").mkdir(parents=True)
    for name in (
        "model/model.safetensors",
        "model/privacy_ledger.json",
        "journal.jsonl",
        "privacy_report.json",
        "lock",
    ):
        (root / name).write_text(f"new {name}")
    for state in ("state-3", "state-2", ".state-4.part"):
        (root / state).mkdir()
        (root / state / "state.json").write_text("{}")
    (root / "run.json").write_text(RunRecord(identity={"records": "1"}).model_dump_json())
    return work


def older(folder: Path) -> None:
    """A run that was published before."""
    for name, file in (("out", "privacy_ledger.json"), ("out.private", "journal.jsonl")):
        (folder / name).mkdir()
        (folder / name / file).write_text("old")
        (folder / name / "more").mkdir()


def check_published(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"out", "out.private"}
    assert {path.name for path in (folder / "out").iterdir()} == {"model.safetensors", "privacy_ledger.json"}
    assert (folder / "out" / "privacy_ledger.json").read_text() == "new model/privacy_ledger.json"
    names = {path.name for path in (folder / "out.private").iterdir()} - {LOCK_FILE}
    assert names == {"journal.jsonl", "privacy_report.json", "run.json"}
    assert (folder / "out.private" / "journal.jsonl").read_text() == "new journal.jsonl"


def dying(work: Callable[[], object], call: int) -> int:
    """Do it in a process that is gone at its `call`th change of a folder; how that one ended."""
    child = os.fork()
    if child == 0:
        seen = 0

        def watch(event: str, _: object) -> None:
            nonlocal seen
            if event in CHANGES:
                seen += 1
                if seen == call:
                    os._exit(DEAD)

        sys.addaudithook(watch)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.ci
@pytest.mark.parametrize("replaces", [False, True])
def test_dead_at_every_change_and_published_all_the_same(tmp_path: Path, replaces: bool) -> None:
    """At each moment OUT is the old model, whole, or the new one, whole, or not there."""
    ended, call = DEAD, 0
    while ended == DEAD:
        call += 1
        folder = tmp_path / str(call)
        folder.mkdir()
        if replaces:
            older(folder)
        work = unfinished(folder / "out.partial")
        finished = Finished(replaces=replaces, steps=1)
        finish(work, finished)
        ended = dying(lambda folder=folder, finished=finished: publish(folder / "out", finished), call)  # type: ignore[misc]
        if (folder / "out").exists():
            reported = (folder / "out" / "privacy_ledger.json").read_text()
            whole = {"old": {"privacy_ledger.json", "more"}}.get(reported, {"privacy_ledger.json", "model.safetensors"})
            assert {path.name for path in (folder / "out").iterdir()} == whole
        if (record := read_record(folder / "out.partial")) is not None:
            assert record.finished == finished
            publish(folder / "out", record.finished)
        check_published(folder)
    assert ended == 0
    assert call > (12 if replaces else 8)


def test_what_has_come_into_being_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    work, finished = unfinished(tmp_path / "out.partial"), Finished(replaces=False, steps=1)
    finish(work, finished)
    older(tmp_path)
    with pytest.raises(UsageError, match="--resume"):
        publish(tmp_path / "out", finished)
    assert (tmp_path / "out" / "privacy_ledger.json").read_text() == "old"
    for name in ("out", "out.private"):
        (tmp_path / name).rename(tmp_path / f"{name}-away")
    publish(tmp_path / "out", finished)
    assert (tmp_path / "out" / "model.safetensors").exists()


def test_dead_before_the_record_is_there_leaves_what_the_next_run_takes(tmp_path: Path) -> None:
    call, ended = 0, DEAD
    while ended == DEAD:
        call += 1
        folder = tmp_path / str(call)
        folder.mkdir()

        def begin(folder: Path = folder) -> None:
            with opened(folder):
                os._exit(0)

        ended = dying(begin, call)
        if ended == DEAD:
            recorded = (folder / "out.partial" / "run.json").exists()
            check_output(folder / "out", force=False, resume=recorded)
            with opened(folder, resume=True) as work:
                assert work.session == recorded
    assert call > 2


def test_a_read_only_folder_is_refused_before_anything() -> None:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        child = os.fork()
        if child == 0:
            if os.geteuid() == 0:
                os.setuid(65534)  # Nothing is read-only to root.
            os._exit(_refused(Path(name)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        Path(name).chmod(0o755)


def _refused(folder: Path) -> int:
    try:
        check_output(folder / "out", force=False, resume=True)
    except InputError as error:
        return 0 if "no folder that can be written to" in str(error) else 1
    return 2


def test_a_death_while_the_first_record_is_written_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    root = tmp_path / "out.partial"
    root.mkdir()
    (root / LOCK_FILE).touch()
    with atomic_write(root / RECORD_FILE) as stream:
        stream.write(b"half")
        [half] = set(root.iterdir()) - {root / LOCK_FILE}
    (root / RECORD_FILE).rename(half)
    with opened(tmp_path) as work:
        assert {path.name for path in work.root.iterdir()} == {LOCK_FILE, RECORD_FILE}
