"""Writing small corpora, compressed as their names say, and reading them back."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record, read_records


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    if name.endswith(".gz"):
        data = gzip.compress(data)
    if name.endswith(".zst"):
        data = zstandard.ZstdCompressor().compress(data)
    path.write_bytes(data)
    return path


def pairs(path: Path, **options: Any) -> list[tuple[str, str]]:
    return [(record.id, record.text) for record in read_records(path, **options)]


def nothing(records: Iterator[Record]) -> Iterable[Sequence[Edit]]:
    """No edits."""
    return (() for _ in records)
