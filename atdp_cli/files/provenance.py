"""Where a file comes from: when it was written, by which software, and the hash of its bytes."""

import hashlib
import importlib.metadata
import platform
from datetime import UTC, datetime
from pathlib import Path

from atdp_cli.files.bounded_read import open_regular


def timestamp() -> str:
    """Now, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def software() -> dict[str, str]:
    """The versions of Python, of atdp and of the libraries that figures depend on."""
    packages = ("atdp", "torch", "transformers", "dp-accounting", "spacy")
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
