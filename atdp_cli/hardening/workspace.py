"""The folders of a run: it works in OUT.partial/, and its model appears as OUT/ in one rename."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.files.atomic_write import TEMPORARY, atomic_rewrite, set_one_time, sync_folder, sync_tree
from atdp_cli.files.private import LOCK_FILE, PARTIAL, PRIVATE, beside, check_free, locked
from atdp_cli.hardening.corpus_key import write_corpus_key
from atdp_cli.hardening.fingerprint import Fingerprint, check_same_fingerprint, first_difference
from atdp_cli.privacy.journal import JOURNAL_FILE
from atdp_cli.privacy.ledger import LEDGER_FILE
from atdp_cli.privacy.trace import TRACE_FILE

RECORD_FILE = "run.json"

MODEL_FOLDER, REPLACED_FOLDER = "model", "replaced"

STATE = "state-"
"""The beginning of a checkpoint folder's name; its number follows."""


class Finished(BaseModel):
    """How a run ended whose folders are still to be renamed.

    Attributes:
        replaces: Whether the model may replace what is in OUT/.
        steps: Steps that were taken, or skipped as planned.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    replaces: bool
    steps: int


class RunRecord(BaseModel):
    """The content of `run.json`.

    Attributes:
        identity: The run's fingerprint.
        sessions: How often the run was started or resumed.
        finished: None while it trains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    kind: Literal["atdp-run"] = "atdp-run"
    identity: dict[str, str]
    sessions: int = 1
    finished: Finished | None = None


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folder that a run works in: `model` becomes OUT/, and the rest of `root` becomes OUT.private/.

    Attributes:
        root: OUT.partial/.
        session: How often the run was interrupted before.
    """

    root: Path
    session: int = 0

    @property
    def model(self) -> Path:
        """The folder that becomes OUT/."""
        return self.root / MODEL_FOLDER

    @property
    def journal(self) -> Path:
        """The journal of the run."""
        return self.root / JOURNAL_FILE

    @property
    def trace(self) -> Path:
        """The file of what the run's mechanisms used."""
        return self.root / TRACE_FILE


def check_output(output: Path, *, force: bool, resume: bool) -> None:
    """Refuse a folder that has no parent, exists without `force`, or holds foreign files.

    Args:
        output: OUT/, the folder that the model appears in.
        resume: Whether to resume an interrupted run, if there is one.

    Raises:
        UsageError: Something is there already, or another run is at work there.
        InputError: The folder above is missing or read-only.
    """
    parent = output.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{parent} is no folder that can be written to.", "Choose another -o.")
    for path, mark in ((output, LEDGER_FILE), (beside(output, PRIVATE), JOURNAL_FILE)):
        if not path.exists():
            continue
        if not force:
            raise UsageError(f"{path} exists.", "Use --force to replace it, or another -o.")
        if not (path / mark).exists():
            raise UsageError(f"{path} was not written by atdp, so --force does not replace it.", "Choose another -o.")
    check_free(beside(output, PARTIAL))
    _check_partial(beside(output, PARTIAL), force=force, resume=resume)


def _check_partial(partial: Path, *, force: bool, resume: bool) -> None:
    if not partial.exists() or _is_new(partial):
        return
    if not (partial / RECORD_FILE).exists():
        which = "--force does not replace it" if force else "it cannot be resumed"
        raise UsageError(f"{partial} was not written by atdp, so {which}.", "Choose another -o.")
    if not force and not resume:
        raise UsageError(
            f"{partial} is left from an interrupted run, of which nothing was released.",
            "Resume it with --resume, use --force to start anew, or choose another -o.",
        )


def _is_new(partial: Path) -> bool:
    """Whether a folder holds nothing but the beginning of a run that had not written its record."""
    return partial.is_dir() and all(
        path.name == LOCK_FILE or (path.name.startswith(".") and path.suffix == TEMPORARY) for path in partial.iterdir()
    )


@contextmanager
def workspace(output: Path, fingerprint: Fingerprint, key: bytes, *, force: bool, resume: bool) -> Iterator[Workspace]:
    """The run's folder, locked against other processes; `check_output` comes first.

    When the run is interrupted, the folder stays if there is something in it to resume from; else it is removed.

    Args:
        key: Under which the ledger commits to the corpus; empty for none.

    Raises:
        UsageError: Another run is at work there, or was since `check_output`, or the interrupted one is not this one.
        InputError: The record of the interrupted run cannot be read.
    """
    root = beside(output, PARTIAL)
    with locked(root):
        _check_partial(root, force=force, resume=resume)
        before = read_record(root) if resume else None
        if before is None:
            _clear(root)
            record = RunRecord(identity=dict(fingerprint))
        else:
            check_same_fingerprint(root, before.identity, fingerprint)
            tidy(root)
            record = before.model_copy(update={"sessions": before.sessions + 1})
        _write_record(root, record)
        write_corpus_key(root, key)
        try:
            yield Workspace(root=root, session=record.sessions - 1)
        except BaseException:
            if not _can_be_resumed(root):
                _clear(root)
                (root / LOCK_FILE).unlink()
                root.rmdir()
            raise


def _can_be_resumed(root: Path) -> bool:
    """Whether there is something to resume; what an earlier resumption spent is kept in any case."""
    if not root.exists() or checkpoint_numbers(root):
        return True
    record = read_record(root)
    return record is not None and (record.sessions > 1 or record.finished is not None)


def checkpoint_numbers(root: Path) -> list[int]:
    """The numbers of the checkpoints in a run's folder, newest first."""
    names = (path.name.removeprefix(STATE) for path in root.glob(f"{STATE}*"))
    return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def read_record(folder: Path) -> RunRecord | None:
    """The record of the run in a folder; None if there is none.

    Raises:
        InputError: It cannot be read, or is of another version.
    """
    path = folder / RECORD_FILE
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InputError(
            f"{path} cannot be read, or is of another version of atdp.", "Start again with --force."
        ) from error


def _write_record(folder: Path, record: RunRecord) -> None:
    atomic_rewrite(folder / RECORD_FILE, (record.model_dump_json(indent=1) + "\n").encode())


def tidy(root: Path) -> None:
    """Remove what an interrupted run left half written."""
    for path in root.iterdir():
        if path.name.startswith(".") or path.name.endswith(".partial") or path.name == MODEL_FOLDER:
            _remove(path)


def _clear(root: Path) -> None:
    for path in root.iterdir():
        if path.name != LOCK_FILE:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def finish(work: Workspace, finished: Finished) -> None:
    """Record that the run has ended and all its files are on disk. Only `publish` remains."""
    for path in work.model.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    work.model.chmod(0o755)
    set_one_time(work.model)
    for path in work.root.iterdir():
        if path.name != LOCK_FILE:
            sync_tree(path)
    record = read_record(work.root)
    if record is None:
        raise RunError(f"{work.root / RECORD_FILE} is gone.", "Leave the folder to the run, and start again.")
    _write_record(work.root, record.model_copy(update={"finished": finished}))


def publish(output: Path, finished: Finished) -> None:
    """Rename a finished run's folders, the model's first and then the private one.

    It can be interrupted anywhere and done again. What is replaced is removed once the new model is in place.

    Raises:
        UsageError: Something else has taken a name meanwhile.
    """
    root, private = beside(output, PARTIAL), beside(output, PRIVATE)
    replaced = root / REPLACED_FOLDER
    for path in root.iterdir():
        if path.name.startswith((STATE, ".")) or path.name.endswith(".partial"):
            _remove(path)
    if (root / MODEL_FOLDER).exists():
        _move_aside(output, replaced / MODEL_FOLDER, finished)
        (root / MODEL_FOLDER).rename(output)
        sync_folder(output.parent)
    if private.exists():
        _move_aside(private, replaced / "private", finished)
    if replaced.exists():
        _remove(replaced)
    root.rename(private)
    sync_folder(output.parent)
    with suppress(FileNotFoundError):
        (private / LOCK_FILE).unlink()


def completed_run(output: Path, fingerprint: Fingerprint) -> Finished | None:
    """How a run ended that is over, after finishing what a crash interrupted in `publish`; None if it is not over.

    Raises:
        UsageError: The run that is over is another one, or another process is at work there.
        InputError: What it left cannot be read.
    """
    partial, private = beside(output, PARTIAL), beside(output, PRIVATE)
    record = read_record(partial)
    if record is not None and record.finished is not None:
        with locked(partial):
            check_same_fingerprint(partial, record.identity, fingerprint)
            publish(output, record.finished)
            return record.finished
    if record is not None:
        return None
    record = read_record(private)
    if not output.exists() or record is None or first_difference(record.identity, fingerprint):
        return None
    if record.finished is not None:
        with suppress(FileNotFoundError):
            (private / LOCK_FILE).unlink()
    return record.finished


def _move_aside(path: Path, destination: Path, finished: Finished) -> None:
    if not path.exists():
        return
    if not finished.replaces:
        raise UsageError(f"{path} was created while the run trained.", "Move it away, and use --resume.")
    if destination.exists():
        _remove(destination)
    destination.parent.mkdir(exist_ok=True)
    path.rename(destination)
