"""Files that are read at once, which therefore must not be able to fill the memory."""

import errno
import os
from pathlib import Path

LARGEST = 1 << 26
"""Bytes of any file of settings or figures; those that atdp writes have a hundredth of it at most."""


def read_whole(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: It cannot be read, or is larger than `LARGEST`.
    """
    with path.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content
