"""Private folders and key files: modes, locks, and their names beside what they belong to."""

import errno
import hmac
import json
import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.corpus_file import STANDARD_OUTPUT, is_stream
from atdp_cli.files.documents import read_whole, timestamp

LOCK_FILE = "lock"


# A record lock belongs to one process and ends with it. What flock gives would live on in a detector's process that
# outlives a run that was killed. Its price: whoever closes the file gives the lock up, so nothing else here opens it.
@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes until the block ends. It is created if needed.

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
    """Check that no other process has locked a folder.

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


KEY_BYTES = 32
"""Bytes of a fresh key; a key for pseudonyms may be longer."""


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700 that git ignores, unless it exists.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    create_private(folder / ".gitignore", b"*\n")


def create_private(path: Path, content: bytes = b"") -> bool:
    """Create a file with mode 0600, whole or not at all, and return whether it is new. An existing file stays.

    Raises:
        OSError: It cannot be made.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # A link fails where the name is taken, also by another process a moment ago; a rename would replace it.
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def user_key_file() -> Path:
    """Where this user's key is: in the folder for state of the XDG base directories."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # Of a user without a home the path stays relative.
    root = state if os.path.isabs(state) else os.path.expanduser("~/.local/state")  # noqa: PTH111, PTH117
    return Path(root) / "atdp" / "cache.key"


def user_key() -> bytes:
    """The key of this user on this machine, made where there is none, for what lies beside files of others.

    Who is handed a corpus with its private folder is handed no key: what that folder holds is not theirs.

    Raises:
        OSError: It can be neither made nor read, is no key, or others may read it.
    """
    path = user_key_file()
    if not path.is_absolute():
        raise FileNotFoundError(errno.ENOENT, "No home folder")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = key_in(path)
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, "Not a key")
    user = getattr(os, "getuid", int)()
    about = path.stat()
    if os.name == "posix" and (about.st_uid != user or about.st_mode & 0o077):
        raise OSError(errno.EPERM, "Others may read it")
    return hmac.digest(key, json.dumps([user, platform.node()]).encode(), "sha256")


def key_in(path: Path) -> bytes:
    """Read a key file. If it does not exist it is created with random bytes.

    Raises:
        OSError: It can be neither created nor read.
    """
    create_private(path, secrets.token_bytes(KEY_BYTES))
    return read_whole(path)


PRIVATE, PARTIAL = ".private", ".partial"
"""What is appended to OUT for the folder of private files, for that of an unfinished run, and for a model that missed
its limit."""


def beside(output: Path, suffix: str) -> Path:
    """`OUT` → `OUT.private`, whatever dots OUT has."""
    return output.with_name(output.name + suffix)


def folders_of(output: Path) -> tuple[Path, Path, Path]:
    """The folders that a run replaces: OUT, OUT.private and OUT.partial.

    Raises:
        UsageError: OUT is no name of a folder.
    """
    if not output.name or output == STANDARD_OUTPUT:
        raise UsageError(f"-o {output} names no new folder.", "Choose another folder with -o.")
    return output, beside(output, PRIVATE), beside(output, PARTIAL)


def private_folder(corpus: Path) -> Path | None:
    """`mail.txt` → `mail.txt.private` beside it; None for a stream, and for a path that has no name."""
    return None if is_stream(corpus) or not corpus.name else beside(corpus, PRIVATE)
