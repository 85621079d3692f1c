"""Hashes of a checkpoint's files, and the check of the ledger beside it against them."""

from collections.abc import Callable
from pathlib import Path

from atdp_cli.files.checkpoint_names import tokenizer_files
from atdp_cli.files.documents import file_sha256
from atdp_cli.model.folder import base_of, check_folder, is_adapter, model_files
from atdp_cli.privacy.ledger import BASE, LEDGER_FILE, Ledger, compare_seal, read_verified


def seal_of(folder: Path, sha256: Callable[[Path], str] = file_sha256) -> dict[str, str]:
    """SHA-256 of every file that a checkpoint is loaded from, by its name; of an adapter's base as `base/NAME`.

    Args:
        sha256: Hashes a file.

    Raises:
        InputError: A file is missing.
    """
    files = model_files(folder) | tokenizer_files(folder)
    return {name: sha256(path) for name, path in sorted((files | _base_files(folder)).items())}


def _base_files(folder: Path) -> dict[str, Path]:
    """The files of an adapter's base, under the names that they have in a seal."""
    if not is_adapter(folder):
        return {}
    base = base_of(folder)
    return {f"{BASE}{name}": path for name, path in (model_files(base) | tokenizer_files(base)).items()}


def ledger_beside(folder: Path, sha256: Callable[[Path], str] = file_sha256) -> Ledger | None:
    """The ledger of a checkpoint, its seal compared with all files that are loaded; None where there is none.

    An adapter without a ledger has the events of its base's, and an unknown past.

    Raises:
        InputError: The ledger is malformed, or its seal does not fit the files.
    """
    if (folder / LEDGER_FILE).exists():
        return verified_ledger(folder, sha256)
    if not is_adapter(folder):
        return None
    inherited = ledger_beside(base_of(folder), sha256)
    return None if inherited is None else inherited.model_copy(update={"checkpoint_history": "unknown"})


def verified_ledger(path: Path, sha256: Callable[[Path], str] = file_sha256) -> Ledger:
    """The ledger in a file or a model's folder, compared with the model where one lies beside it.

    Raises:
        InputError: There is none, it is malformed, or its seal does not fit the files; or the model has files or
            settings by which transformers would load something else.
    """
    ledger = read_verified(path, sha256)
    folder = path if path.is_dir() else path.parent
    if not any(folder.glob("*.safetensors")):
        return ledger
    check_folder(folder)
    sealed = {name: digest for name, digest in ledger.seal.items() if name.startswith(BASE)}
    compare_seal(path, sealed, _base_files(folder), sha256)
    return ledger
