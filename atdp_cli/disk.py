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


def sync_tree(folder: Path) -> None:
    """Return once a folder is on disk with all that is in it.

    Raises:
        OSError: A file cannot be written out.
    """
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_folder(path)
        else:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    sync_folder(folder)
