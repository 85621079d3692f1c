"""A folder that one process works in at a time."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.provenance import timestamp

LOCK_FILE = "lock"

# A record lock belongs to one process and ends with it. What flock gives would live on in a detector's process that
# outlives a run that was killed. Its price: whoever closes the file gives the lock up, so nothing else here opens it.


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A folder, made where it is missing, that no other process has as long as this lasts.

    Raises:
        UsageError: Another process has it; the message says which.
        InputError: It cannot be made.
    """
    handle = _acquired(folder)
    try:
        yield
    finally:
        os.close(handle)


def check_free(folder: Path) -> None:
    """Refuse a folder that another process has.

    Raises:
        UsageError: It has; the message says which.
    """
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDWR)
    except OSError:
        return
    try:
        _lock(handle, folder)
    finally:
        os.close(handle)


def _acquired(folder: Path) -> int:
    while True:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # The process that had it removed it between the two.
        except OSError as error:
            raise InputError(f"{folder} cannot be written to ({error.strerror}).", "Choose another -o.") from error
        try:
            _lock(handle, folder)
            if _is_at(handle, folder / LOCK_FILE):
                about = {"process": os.getpid(), "host": platform.node(), "since": timestamp()}
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(about).encode(), 0)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; nothing keeps two runs apart there.
        return
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise UsageError(
            f"{folder} is in use by {_holder(handle)}.", "Wait for it to end, or choose another -o."
        ) from None


def _is_at(handle: int, path: Path) -> bool:
    """Whether the file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        about = json.loads(os.pread(handle, 4096, 0))
        return f"process {about['process']} on {about['host']} since {about['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
