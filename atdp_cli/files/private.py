"""Folders and key files that only their owner may read, and the names of folders beside a corpus or a model."""

import os
import secrets
from pathlib import Path

from atdp_cli.files.bounded_read import read_whole
from atdp_cli.files.corpus_file import is_stream

KEY_BYTES = 32
"""Of a fresh key; a key for pseudonyms may be longer."""


def make_private(folder: Path) -> None:
    """A folder with mode 0700 that git passes by, unless there is one.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    create_private(folder / ".gitignore", b"*\n")


def create_private(path: Path, content: bytes = b"") -> bool:
    """A file with mode 0600 that appears whole, and whether it is new: one that is there stays as it is.

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


def key_in(path: Path) -> bytes:
    """The content of a key file, which is created with fresh random bytes if it does not exist.

    Raises:
        OSError: It can be neither created nor read.
    """
    create_private(path, secrets.token_bytes(KEY_BYTES))
    return read_whole(path)


PRIVATE, PARTIAL, FAILED = ".private", ".partial", ".failed"
"""What is appended to OUT for the folder of private files, for that of an unfinished run, and for a model that missed
its limit."""


def beside(output: Path, suffix: str) -> Path:
    """`OUT` → `OUT.private`, whatever dots OUT has."""
    return output.with_name(output.name + suffix)


def private_folder(corpus: Path) -> Path | None:
    """`mail.txt` → `mail.txt.private` beside it; None for a stream, and for a path that has no name."""
    return None if is_stream(corpus) or not corpus.name else beside(corpus, PRIVATE)
