"""What a finding depends on besides the text: the identity of a detector."""

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

from atdp_cli.detection.entities import EntityPipeline

SOURCES = (
    *("corpus/spans.py", "files/word_lists.py", "detection/scan.py", "detection/spacy.py", "detection/entities.py"),
    *(
        "detection/identifiers",
        "detection/plain_copy.py",
        "detection/refine.py",
        "detection/structure.py",
        "detection/word_lists.py",
        "detection/words",
    ),
)
"""The files and folders of atdp_cli that find spans and correct them."""

LIBRARIES = ("spacy", "phonenumbers", "python-stdnum")


def detector_identity(pipeline: Any) -> bytes:
    """Return a digest that changes with anything that may change what the recognisers and the pipeline find.

    A pipeline is identified by what its folder holds, since it can be trained again without a new version. An added
    file or a later version changes the digest also where the findings would be the same; they are then made anew.

    Args:
        pipeline: From `load_pipeline`, or an `EntityPipeline`.

    Raises:
        OSError: A file cannot be read.
    """
    entities = []
    if isinstance(pipeline, EntityPipeline):
        entities, pipeline = [pipeline.identity], pipeline.pipeline
    folder = Path(pipeline.path)
    digest = _rules_digest(
        [*entities, unidata_version, pipeline.meta["version"], pipeline.pipe_names, *map(version, LIBRARIES)]
    )
    add_files(digest, folder, folder.rglob("*"))
    return digest.digest()


def code_identity() -> bytes:
    """Return the digest without the pipeline, to compare the installations of two machines."""
    return _rules_digest([unidata_version, *map(version, (*LIBRARIES, "numpy", "thinc"))]).digest()


def _rules_digest(facts: list[Any]) -> "hashlib._Hash":
    digest = hashlib.sha256(json.dumps(facts).encode())
    here = Path(str(files("atdp_cli")))
    add_files(digest, here, (path for name in SOURCES for path in (here / name, *(here / name).rglob("*"))))
    return digest


def add_files(digest: "hashlib._Hash", folder: Path, paths: Iterable[Path]) -> None:
    """Add the names, relative to `folder`, and the contents of all files among `paths` to a digest.

    Raises:
        OSError: A file cannot be read.
    """
    for path in sorted(path for path in paths if path.is_file() and path.parent.name != "__pycache__"):
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        name = path.relative_to(folder).as_posix().encode()
        # The length in front, so that no two lists of files run into the same bytes.
        digest.update(len(name).to_bytes(8, "big") + name + content)
