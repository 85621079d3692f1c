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
from atdp_cli.files.atomic_write import TEMPORARY, atomic_rewrite
from atdp_cli.files.fsync import sync_folder, sync_tree
from atdp_cli.files.lock import LOCK_FILE, check_free, locked
from atdp_cli.files.private import PARTIAL, PRIVATE, beside
from atdp_cli.privacy.journal import JOURNAL_FILE
from atdp_cli.privacy.ledger import LEDGER_FILE
from atdp_cli.runs.checkpoint import STATE, checkpoint_numbers
from atdp_cli.runs.fingerprint import Fingerprint, check_same_fingerprint

RECORD_FILE = "run.json"

MODEL_FOLDER, REPLACED_FOLDER = "model", "replaced"


class Finished(BaseModel):
    """How a run ended that needs only to be given its names.

    Attributes:
        folder: The name under which the model appears, OUT or OUT.failed.
        replaces: Whether it may replace what has that name.
        failed: Why it is OUT.failed, as a sentence; None for OUT.
        steps: That were taken or skipped as planned.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    replaces: bool
    failed: str | None = None
    steps: int


class RunRecord(BaseModel):
    """What `run.json` says of a run.

    Attributes:
        identity: As `identity_of` has it.
        sessions: How often it was begun or gone on with.
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
    """Where a run works: `model` becomes OUT/, and what is left of `root` becomes OUT.private/.

    Attributes:
        root: OUT.partial/.
        session: How often the run was interrupted before.
    """

    root: Path
    session: int = 0

    @property
    def model(self) -> Path:
        """What becomes OUT/."""
        return self.root / MODEL_FOLDER

    @property
    def private(self) -> Path:
        """What becomes OUT.private/."""
        return self.root

    @property
    def journal(self) -> Path:
        """The journal of the run."""
        return self.root / JOURNAL_FILE


def check_output(output: Path, *, force: bool, resume: bool = False) -> None:
    """Refuse to write where there is no folder, to overwrite without `force`, and ever to replace foreign files.

    Raises:
        UsageError: Something is there already, or another run is at work there.
        InputError: The folder above is missing or read-only.
    """
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise InputError(f"{output.parent} is no folder that can be written to.", "Choose another -o.")
    for path, mark in ((output, LEDGER_FILE), (beside(output, PRIVATE), JOURNAL_FILE)):
        if not path.exists():
            continue
        if not force:
            raise UsageError(f"{path} exists.", "Use --force to replace it, or another -o.")
        if not (path / mark).exists():
            raise UsageError(f"{path} was not written by atdp, so --force does not replace it.", "Choose another -o.")
    _check_partial(beside(output, PARTIAL), force=force, resume=resume)


def _check_partial(partial: Path, *, force: bool, resume: bool) -> None:
    check_free(partial)
    if not partial.exists() or _is_new(partial):
        return
    if not (partial / RECORD_FILE).exists():
        which = "--force does not replace it" if force else "it cannot be gone on with"
        raise UsageError(f"{partial} was not written by atdp, so {which}.", "Choose another -o.")
    if not force and not resume:
        raise UsageError(
            f"{partial} is left from an interrupted run, of which nothing was released.",
            "Go on with it by --resume, use --force to start anew, or choose another -o.",
        )


def _is_new(partial: Path) -> bool:
    """Whether a folder holds nothing but the beginning of a run that had not written its record."""
    return partial.is_dir() and all(
        path.name == LOCK_FILE or (path.name.startswith(".") and path.suffix == TEMPORARY) for path in partial.iterdir()
    )


@contextmanager
def workspace(output: Path, identity: Fingerprint, *, force: bool, resume: bool = False) -> Iterator[Workspace]:
    """A place to work that no other process has.

    When the work breaks off, what can be gone on from stays, and everything else is removed.

    Args:
        resume: Go on with the run that was interrupted, if there is one.

    Raises:
        UsageError: Something is there already, another run is at work there, or the one that was interrupted is not
            this one.
        InputError: The folder above is missing or read-only, or the record of the interrupted run cannot be read.
    """
    check_output(output, force=force, resume=resume)
    root = beside(output, PARTIAL)
    with locked(root):
        before = read_record(root) if resume else None
        if before is None:
            _clear(root)
            record = RunRecord(identity=dict(identity))
        else:
            check_same_fingerprint(root, before.identity, identity)
            tidy(root)
            record = before.model_copy(update={"sessions": before.sessions + 1})
        _write_record(root, record)
        try:
            yield Workspace(root=root, session=record.sessions - 1)
        except BaseException:
            if not _worth_keeping(root):
                _clear(root)
                (root / LOCK_FILE).unlink()
                root.rmdir()
            raise


def _worth_keeping(root: Path) -> bool:
    """Whether there is something to go on from; what a run has spent that was gone on with is counted further."""
    if not root.exists() or checkpoint_numbers(root):
        return True
    record = read_record(root)
    return record is not None and (record.sessions > 1 or record.finished is not None)


def read_record(folder: Path) -> RunRecord | None:
    """What a folder says of its run; None where there is none.

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
    """Remove what an interruption left half written."""
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
    """Say that the run has ended, once all that it wrote is on disk; from here on nothing but names is missing."""
    for path in work.model.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    work.model.chmod(0o755)
    for path in work.root.iterdir():
        if path.name != LOCK_FILE:
            sync_tree(path)
    record = read_record(work.root)
    if record is None:
        raise RunError(f"{work.root / RECORD_FILE} is gone.", "Leave the folder to the run, and start again.")
    _write_record(work.root, record.model_copy(update={"finished": finished}))


def publish(root: Path, finished: Finished) -> Path:
    """Give the folders of a finished run their names; the model's, which this returns, first.

    It can be broken off and done again anywhere. What is replaced is removed once the new model stands.

    Raises:
        UsageError: Something else has taken a name meanwhile.
    """
    output = root.with_name(finished.folder)
    private, replaced = beside(output, PRIVATE), root / REPLACED_FOLDER
    for path in root.iterdir():
        if path.name.startswith((STATE, ".")) or path.name.endswith(".partial"):
            _remove(path)
    if (root / MODEL_FOLDER).exists():
        _aside(output, replaced / MODEL_FOLDER, finished)
        (root / MODEL_FOLDER).rename(output)
        sync_folder(output.parent)
    if private.exists():
        _aside(private, replaced / "private", finished)
    if replaced.exists():
        _remove(replaced)
    root.rename(private)
    sync_folder(output.parent)
    with suppress(FileNotFoundError):
        (private / LOCK_FILE).unlink()
    return output


def _aside(path: Path, place: Path, finished: Finished) -> None:
    if not path.exists():
        return
    if not finished.replaces:
        raise UsageError(f"{path} has come into being while the run went on.", "Move it away, and use --resume.")
    if place.exists():
        _remove(place)
    place.parent.mkdir(exist_ok=True)
    path.rename(place)
