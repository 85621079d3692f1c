"""What a row of the tables is, and how files are made and damaged."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECRET = "Quillfeather"
"""Stands in every corpus, and must never stand in a message."""

Make = Callable[[Path], object]


def nothing(place: Path) -> None:
    """The damage is on the command line."""


@dataclass(frozen=True)
class Case:
    """One malformed input.

    Attributes:
        name: Says what is wrong.
        command: The command line, in a folder that holds a model and a corpus.
        said: What the one line on standard error says of what is wrong and where; its other words may improve.
        make: Makes or damages files in that folder.
    """

    name: str
    command: tuple[str, ...]
    said: str
    make: Make = nothing
    code: int = 2


def cases(command: tuple[str, ...], rows: Mapping[str, str | tuple[str, Make]]) -> tuple[Case, ...]:
    """Cases of one command line, by their names: what is said, and the damage where it is not on the command line."""
    return tuple(Case(name, command, *((row,) if isinstance(row, str) else row)) for name, row in rows.items())


def line(text: str) -> tuple[str, ...]:
    """A command line as one types it."""
    return tuple(text.split())


def write(name: str, content: bytes | str) -> Make:
    """Write a file."""
    data = content.encode() if isinstance(content, str) else content
    return lambda place: (place / name).write_bytes(data)


def link(name: str, target: str) -> Make:
    """Put a symbolic link in the place of a file."""

    def make(place: Path) -> None:
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to(target)

    return make


def remove(name: str) -> Make:
    """Delete a file."""
    return lambda place: (place / name).unlink()


def both(*makes: Make) -> Make:
    """One after the other."""
    return lambda place: [make(place) for make in makes]


def change(name: str, **members: Any) -> Make:
    """Set members of a file's JSON object."""

    def make(place: Path) -> None:
        actual = json.loads((place / name).read_text())
        (place / name).write_text(json.dumps(actual | members))

    return make


def safetensors(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    """A file whose header says what it likes."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(name: str, change: Callable[[Any], Any] | None) -> Make:
    """Change one tensor of the model's, or take it out."""

    def make(place: Path) -> None:
        from safetensors.torch import load_file, save_file

        file = place / "model" / "model.safetensors"
        tensors = load_file(file)
        actual = tensors.pop(name)
        kept = tensors if change is None else tensors | {name: change(actual)}
        save_file({key: weight.contiguous() for key, weight in kept.items()}, file, metadata={"format": "pt"})

    return make


def index(weight_map: object) -> Make:
    """An index in the place of the weights."""
    return both(
        remove("model/model.safetensors"),
        write("model/model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": weight_map})),
    )


def assert_one_line(error: str, case: Case) -> None:
    """Standard error is the one line of the case, after the first word of a command that had begun to read a model."""
    *first_words, last = error.splitlines()
    assert last.startswith("atdp: ")
    assert case.said in last
    assert len(first_words) <= 1
    assert all(word.startswith(("Auditing ", "Mapping ", "Reading ")) for word in first_words)
