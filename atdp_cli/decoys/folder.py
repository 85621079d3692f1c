"""The output folder of `atdp decoy`: written as OUT.partial/ and renamed to OUT/ at once."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.files.atomic_write import set_one_time, sync_folder, sync_tree
from atdp_cli.files.corpus_file import compression_of, kind_of
from atdp_cli.files.private import LOCK_FILE, PARTIAL, PRIVATE, beside, check_free, locked, make_private
from atdp_cli.hardening.corpus_key import CORPUS_KEY_FILE, write_corpus_key
from atdp_cli.privacy.ledger import LEDGER_FILE, read_ledger
from atdp_cli.privacy.scope import is_of_text

COPIES_FOLDER, REPLACED = "copies", "replaced"


def check_copies(output: Path, *, force: bool) -> None:
    """Refuse a folder that has no parent, exists without `force`, or holds anything but copies.

    Raises:
        UsageError: Something is there already, or another process is at work there.
        InputError: The folder above is missing or read-only.
    """
    parent, private, partial = output.parent, beside(output, PRIVATE), beside(output, PARTIAL)
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{parent} is no folder that can be written to.", "Choose another -o.")
    if os.path.lexists(output):
        if not force:
            raise UsageError(f"{output} exists.", "Use --force to replace it, or another -o.")
        if not _holds_copies(output):
            raise UsageError(
                f"{output} holds no copies of atdp decoy, so --force does not replace it.", "Use another -o."
            )
    if private.exists() and not (private / CORPUS_KEY_FILE).is_file():
        raise UsageError(f"{private} was not written by atdp.", "Choose another -o.")
    check_free(partial)
    _check_partial(partial)


def copy_names(corpus: Path, epochs: int) -> tuple[str, ...]:
    """The names of the copies, which sort in their order: `mail.jsonl.gz` → `epoch-01.jsonl.gz`, …"""
    packed = compression_of(corpus)
    plain = corpus.with_suffix("") if packed else corpus
    suffix = plain.suffix if plain.suffix or kind_of(corpus) != "text" else ".txt"
    return tuple(f"epoch-{epoch:0{len(str(epochs))}}{suffix}{packed}" for epoch in range(1, epochs + 1))


def _holds_copies(folder: Path) -> bool:
    try:
        return is_of_text(read_ledger(folder / LEDGER_FILE))
    except InputError:
        return False


def _check_partial(partial: Path) -> None:
    """Refuse a folder for unfinished copies that holds anything else."""
    ours = {LOCK_FILE, COPIES_FOLDER, REPLACED}
    if partial.exists() and not (partial.is_dir() and {path.name for path in partial.iterdir()} <= ours):
        raise UsageError(f"{partial} is of another run.", "Choose another -o.")


@contextmanager
def copies_folder(output: Path, key: bytes, *, force: bool) -> Iterator[Path]:
    """A folder that becomes `output` when the block ends without an error, and nothing otherwise.

    What has a name with a dot in front does not stay. The key is then in OUT.private/, unless there is one.

    Args:
        force: Replace copies that are there.

    Raises:
        UsageError: Another process is at work there, or has written OUT meanwhile.
        RunError: The disk is full or does not allow writing.
    """
    partial = beside(output, PARTIAL)
    with locked(partial):
        _check_partial(partial)
        try:
            yield _cleared(partial)
            _publish(partial, output, key, force=force)
        except OSError as error:
            raise RunError(
                f"{output} could not be written ({error.strerror}).", "Check free space and permissions."
            ) from error
        finally:
            if (partial / REPLACED).exists() and not os.path.lexists(output):
                (partial / REPLACED).rename(output)
            shutil.rmtree(partial, ignore_errors=True)


def _cleared(partial: Path) -> Path:
    """Make an empty folder for the copies."""
    folder = partial / COPIES_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _publish(partial: Path, output: Path, key: bytes, *, force: bool) -> None:
    folder, private = partial / COPIES_FOLDER, beside(output, PRIVATE)
    for hidden in folder.glob(".*"):
        hidden.unlink()
    folder.chmod(0o755)
    set_one_time(folder)
    sync_tree(folder)
    make_private(private)
    write_corpus_key(private, key)
    if os.path.lexists(output):
        _check_replaceable(output, force=force)
        output.rename(partial / REPLACED)
    folder.rename(output)
    sync_folder(output.parent)


def _check_replaceable(output: Path, *, force: bool) -> None:
    """Refuse to replace what another process wrote meanwhile."""
    if not (force and _holds_copies(output)):
        raise UsageError(f"{output} was created meanwhile.", "Move it away, or choose another -o.")
