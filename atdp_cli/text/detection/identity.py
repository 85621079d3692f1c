"""What a finding depends on besides the text: the identity of a detector."""

import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

SOURCES = ("scan.py", "spacy_reader.py", "spans.py", "function_words.py", "function_words.txt", "identifiers")
"""The files and folders of this package that make a finding."""

LIBRARIES = ("spacy", "phonenumbers", "python-stdnum")


def detector_identity(pipeline: Any) -> bytes:
    """A digest that changes with anything that may change what the default recognisers and a pipeline find.

    The pipeline is told by what its folder holds, not by its version: one can be trained again without a new one.
    An added file or a later version changes it also where the findings would be the same; then they are made anew.

    Args:
        pipeline: From `load_pipeline`.

    Raises:
        OSError: A file cannot be read.
    """
    facts = [unidata_version, pipeline.meta["version"], pipeline.pipe_names, *map(version, LIBRARIES)]
    digest = hashlib.sha256()
    _add_rules(digest, facts)
    folder = Path(pipeline.path)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            _add(digest, file.relative_to(folder).as_posix(), hashlib.file_digest(stream, "sha256").digest())
    return digest.digest()


def code_identity() -> bytes:
    """The same without the pipeline: whether another machine's installation would find the same with it."""
    digest = hashlib.sha256()
    _add_rules(digest, [unidata_version, *map(version, (*LIBRARIES, "numpy", "thinc"))])
    return digest.digest()


def _add_rules(digest: Any, facts: list[Any]) -> None:
    digest.update(json.dumps(facts).encode())
    here = files("atdp_cli.text.detection")
    for name in SOURCES:
        for path, content in _contents(here / name, name):
            _add(digest, path, content)


def _contents(source: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if source.is_file():
        yield name, source.read_bytes()
        return
    for inner in sorted(source.iterdir(), key=lambda each: each.name):
        if inner.name != "__pycache__":
            yield from _contents(inner, f"{name}/{inner.name}")


def _add(digest: Any, name: str, content: bytes) -> None:
    # Lengths in front, so that no two lists of files run into the same bytes.
    for part in (name.encode(), content):
        digest.update(len(part).to_bytes(8, "big") + part)
