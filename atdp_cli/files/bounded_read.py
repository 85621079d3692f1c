"""Files that are read at once: regular ones, which do not block, and none that could fill the memory."""

import errno
import io
import os
import stat
from pathlib import Path

MAX_FILE = 1 << 26
"""Bytes of any file of settings or figures; those that atdp writes have a hundredth of it at most."""


def open_regular(path: Path) -> io.BufferedReader:
    """A regular file, or what a symbolic link to one leads to, opened for reading.

    A pipe without a writer would block when it is opened, and a device never ends.

    Raises:
        OSError: It cannot be opened, or is a folder, a pipe, a socket or a device.
    """
    return open(path, "rb", opener=_regular_handle)


NOT_REGULAR = "Not a regular file"


def _regular_handle(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_whole(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger than `MAX_FILE`.
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content
