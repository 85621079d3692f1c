"""One digest of everything that decides what is flagged in a text and how it is redacted or decoyed."""

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from unicodedata import unidata_version

from atdp_cli.detection.identity import LIBRARIES, SOURCES, add_files
from atdp_cli.detection.scan import installed_pipeline
from atdp_cli.errors import InputError

_PARTS = (
    *(*SOURCES, "detection/detect.py", "corpus/edits.py", "replacement/placeholders.py", "replacement/edits.py"),
    *("replacement/decoys.py", "replacement/draw.py", "replacement/equality.py", "replacement/decoy_words.txt"),
    *("replacement/plausible.py", "replacement/frequencies.py"),
)


def text_identity(pipeline: str | None, settings: Mapping[str, object] | None = None) -> str:
    """SHA-256, in hexadecimal. It differs wherever flags, placeholders or decoys may differ, and sometimes elsewhere.

    It does not load spaCy.

    Args:
        pipeline: The spaCy pipeline's name or folder; None for the default one.
        settings: Of the detector, those that are not the default, by name.

    Raises:
        InputError: There is no such pipeline, or it cannot be read.
    """
    name = installed_pipeline(pipeline)
    digest = hashlib.sha256(json.dumps([unidata_version, *map(version, (*LIBRARIES, "numpy", "thinc"))]).encode())
    try:
        here = Path(str(files("atdp_cli")))
        add_files(digest, here, (path for name in _PARTS for path in (here / name, *(here / name).rglob("*"))))
        loaded_from = _pipeline_folder(name)
        if loaded_from is None:
            digest.update(name.encode())
        else:
            add_files(digest, loaded_from, loaded_from.rglob("*"))
    except OSError as error:
        raise InputError(
            f"The spaCy pipeline {name} cannot be read ({error.strerror}).", "Install it again."
        ) from error
    if settings:
        digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def _pipeline_folder(name: str) -> Path | None:
    """Where a pipeline's files are; None for a blank one, which has none."""
    if Path(name).is_dir():
        return Path(name)
    spec = None if name.startswith("blank:") else find_spec(name)
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0])
