"""The file that holds the key of pseudonyms."""

import secrets
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.text.files import unreadable
from atdp_cli.text.placeholders import KEY_BYTES
from atdp_cli.text.privatefiles import create

MOST_BYTES = 4096
"""A longer file is taken for something else than a key."""


def read_or_create_key(path: Path) -> bytes:
    """The bytes of a key file, which is created with fresh random ones, for its owner alone, if it does not exist.

    Raises:
        InputError: The file has fewer than 32 bytes or more than `MOST_BYTES`, or cannot be read or created.
    """
    try:
        create(path, secrets.token_bytes(KEY_BYTES))
    except OSError as error:
        raise InputError(f"{path} could not be created ({error.strerror}).", "Name another file.") from error
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            key = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if not KEY_BYTES <= len(key) <= MOST_BYTES:
        size = f"only {len(key)}" if len(key) < KEY_BYTES else f"more than {MOST_BYTES:,}"
        raise InputError(
            f"{path} has {size} bytes; a key for pseudonyms has {KEY_BYTES} to {MOST_BYTES:,}.",
            "Name another file; one that does not exist is created with a random key.",
        )
    return key
