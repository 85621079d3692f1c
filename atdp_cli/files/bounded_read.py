"""Files that are read at once, which therefore must not be able to fill the memory."""

import errno
import os
from pathlib import Path

LARGEST_FILE = 1 << 26
"""Bytes of any file of settings or figures; those that atdp writes have a hundredth of it at most."""


def read_whole(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: It cannot be read, or is larger than `LARGEST_FILE`.
    """
    with path.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content
