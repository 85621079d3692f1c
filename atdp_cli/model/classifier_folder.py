"""A folder with a token classifier, checked before anything of it is loaded. Never imports torch."""

import hashlib
import json
import re
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.bounded_read import read_whole
from atdp_cli.files.checkpoint_names import CONFIG, tokenizer_files
from atdp_cli.files.json_text import parse_json
from atdp_cli.model.entity_tags import OUTSIDE
from atdp_cli.model.folder import check_folder, is_adapter, model_files
from atdp_cli.text.detection.identity import add_files

_ARCHITECTURE = "ForTokenClassification"

_NO_NAME = re.compile(r"LABEL_\d+")
"""What transformers calls a class that was given no name."""

_SOURCES = ("classifier_folder.py", "entity_tags.py", "token_classifier.py")


def classifier_labels(folder: Path) -> tuple[str, ...]:
    """The names of the classes of a token classifier, in their order.

    Raises:
        InputError: The folder is no such model saved as safetensors with its fast tokenizer, or its classes have no
            names, or none is `O`.
    """
    check_folder(folder)
    if is_adapter(folder):
        raise InputError(f"{folder} holds an adapter.", "Merge it into its token classifier, and give that.")
    config = parse_json(read_whole(folder / CONFIG).decode("utf-8"))
    architectures = config.get("architectures") or ()
    if not any(str(name).endswith(_ARCHITECTURE) for name in architectures):
        raise InputError(
            f"{folder} is no token classifier: {CONFIG} names no architecture …{_ARCHITECTURE}.",
            "Give a model that was trained to tag tokens.",
        )
    names = config.get("id2label")
    given = names if isinstance(names, dict) else {}
    labels = tuple(str(given.get(str(number), "")) for number in range(len(given)))
    if not labels or not all(labels) or all(map(_NO_NAME.fullmatch, labels)):
        raise InputError(
            f"{folder / CONFIG} does not name the classes (id2label), so nobody knows what they find.",
            'Name them there, as in {"0": "O", "1": "B-PER", "2": "I-PER"}.',
        )
    if OUTSIDE not in map(str.upper, labels) or len(labels) == 1:
        raise InputError(
            f"{folder / CONFIG}: the classes (id2label) are not {OUTSIDE}, for what is no entity, and others.",
            "Name them as in IOB: O, B-PER, I-PER.",
        )
    return labels


def classifier_identity(folder: Path) -> str:
    """SHA-256, in hexadecimal, of all files that a token classifier is loaded from, and of the code that runs it.

    Raises:
        InputError: As `classifier_labels`, or a file cannot be read.
    """
    classifier_labels(folder)
    digest = hashlib.sha256(json.dumps([*map(version, ("torch", "transformers", "tokenizers"))]).encode())
    here = Path(str(files("atdp_cli.model")))
    try:
        add_files(digest, here, (here / name for name in _SOURCES))
        add_files(digest, folder, (model_files(folder) | tokenizer_files(folder)).values())
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}).", "Check its permissions.") from error
    return digest.hexdigest()
