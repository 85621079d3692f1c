"""Files that appear whole or not at all, and checks of what may be overwritten."""

import contextlib
import functools
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.files.corpus_file import STANDARD_INPUT, STANDARD_OUTPUT, Writable, compressed, compression_of


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on disk: those of files that were created, renamed or removed."""
    # Windows cannot open a folder; there the rename alone has to do.
    with contextlib.suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(path: Path) -> None:
    """Return once a file is on disk, or a folder with all that is in it.

    Raises:
        OSError: It cannot be written out.
    """
    if path.is_dir():
        for inside in path.iterdir():
            sync_tree(inside)
        sync_folder(path)
    else:
        _sync(path)


def set_one_time(folder: Path) -> None:
    """Give a folder and all in it the present time, so that no two files tell how long a run took."""
    now = int(time.time())
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (now, now))


TEMPORARY = ".tmp"
"""The suffix of a file that is being written; its name begins with a dot."""


@contextlib.contextmanager
def atomic_write(target: Path, *, mode: int = 0o666, replace: bool = True) -> Iterator[Writable]:
    """Open a binary stream that becomes `target` if the block ends without an error.

    The bytes go to a temporary file beside `target`, are flushed to disk and renamed into place.
    Compressed as the suffix of `target` says; the same bytes in give the same file.

    Args:
        mode: Permissions of a new file, before the process's mask.
        replace: Whether a file that is there by then is replaced.

    Raises:
        UsageError: It is not to be replaced, and there now: another process has written it.
        InputError: The target's folder is missing, or the target is a folder or a device.
        RunError: The disk is full or does not allow writing.
    """
    _check_replaceable(target)
    temporary = target.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with open(temporary, "xb", opener=functools.partial(os.open, mode=mode)) as plain:
            with compressed(plain, compression_of(target)) as stream:
                yield stream
            plain.flush()
            os.fsync(plain.fileno())
        _put(temporary, target, replace=replace)
        sync_folder(target.parent)
    except OSError as error:
        raise RunError(
            f"{target} could not be written ({error.strerror}).", "Check free space and permissions."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _put(temporary: Path, target: Path, *, replace: bool) -> None:
    if not replace:
        try:
            # A link fails where the name is taken, also a moment ago; a rename would replace it.
            os.link(temporary, target)
        except FileExistsError:
            raise _exists(target) from None
        except OSError:  # a file system without such links
            if os.path.lexists(target):
                raise _exists(target) from None
        else:
            return
    temporary.replace(target)


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists.", "Use --force to replace it, or choose another name.")


def atomic_rewrite(target: Path, data: bytes) -> None:
    """Replace a file's content, wholly or not at all. Only its owner may read a new file.

    Permissions stay, and a symbolic link still leads to the file.

    Raises:
        InputError: The target's folder is missing, or the target is a folder.
        RunError: The disk is full or does not allow writing.
    """
    target = real_path(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    with atomic_write(target, mode=mode) as stream:
        stream.write(data)
    # The process's mask may have taken away what the file allowed before.
    target.chmod(mode)


def check_new(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file without `force`, or to write into a folder that is not there.

    Raises:
        UsageError: The file exists.
        InputError: Its folder does not, or it is a folder or a device.
    """
    _check_replaceable(path)
    if os.path.lexists(path) and not force:
        raise _exists(path)


def _check_replaceable(path: Path) -> None:
    """Refuse what a rename must not replace, and a name that no file can have."""
    if path == Path("-"):
        raise UsageError("- stands for standard output, where this cannot be written.", "Name the file to write.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder.", "Create it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder.", "Name the file to write.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file, so it is not replaced.", "Name the file to write.")


def real_path(path: Path) -> Path:
    """The absolute path without symbolic links; those that lead in a circle stay."""
    return Path(os.path.realpath(path))


def same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one place; hard links of a file do too."""
    if real_path(first) == real_path(second):
        return True
    try:
        return first.samefile(second)
    except OSError:
        return False


def check_apart(read: Iterable[Path], written: Iterable[Path]) -> None:
    """Refuse to overwrite or to remove what is read, however it is spelled or linked, and to write two things as one.

    Args:
        read: Files, and folders whose files are read with them. A link on the way to one is read too.
        written: Files, and folders that are replaced with all that lies in them. None need exist, but a link that
            leads nowhere is refused.

    Raises:
        UsageError: A path in `read` is one in `written`, or lies in it, or two of the latter are one.
        InputError: A link in `written` leads nowhere.
    """
    targets = [path for path in written if path != STANDARD_OUTPUT]
    for at, target in enumerate(targets):
        if target.is_symlink() and not target.exists():
            raise InputError(f"{target} is a link that leads nowhere.", "Remove it, or choose another name.")
        if any(same_file(target, other) for other in targets[:at]):
            raise UsageError(f"{target} is to be written twice.", "Give each output a name of its own.")
    steps = {step: path for path in read for step in _steps(path)}
    within = {part: path for step, path in steps.items() for part in (step, *step.parents)}
    for part, path in within.items():
        for target in targets:
            if same_file(target, part):
                raise UsageError(f"{target} would be replaced, and {path}, which is read, with it.", ELSEWHERE)


ELSEWHERE = "Choose another name for what is written."


def _steps(path: Path) -> Iterator[Path]:
    """What is on the way to a path, link by link, and to the files in it where it is a folder."""
    if path == STANDARD_INPUT:
        path = Path("/dev/stdin")
    for each in (path, *(path.iterdir() if path.is_dir() else ())):
        step = Path.cwd() / each
        for _ in range(MAX_LINKS):
            yield step
            link = next((part for part in reversed((step, *step.parents)) if part.is_symlink()), None)
            if link is None:
                break
            step = link.parent / link.readlink() / step.relative_to(link)


MAX_LINKS = 40
"""As many as Linux follows."""
