"""What has to be on the disk before something else may happen, also if the power fails."""

import contextlib
import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on disk: those of files that were created, renamed or removed."""
    # Windows cannot open a folder; there the rename alone has to do.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
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
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
