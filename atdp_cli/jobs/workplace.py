"""The folders of a run: everything is built in OUT.partial/ and appears under its name in one rename."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.privacy.journal import JOURNAL_FILE
from atdp_cli.privacy.ledger import LEDGER_FILE

PRIVATE, PARTIAL, FAILED = ".private", ".partial", ".failed"
"""What is appended to OUT for the folder of private files, for that of an unfinished run, and for a model that missed
its limit."""


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Where a run works: `model` becomes OUT/, `private` becomes OUT.private/."""

    model: Path
    private: Path


def beside(output: Path, suffix: str) -> Path:
    """`OUT` → `OUT.private`, whatever dots OUT has."""
    return output.with_name(output.name + suffix)


def check_output(output: Path, *, force: bool) -> None:
    """Refuse to write where there is no folder, to overwrite without `force`, and ever to replace foreign files.

    Raises:
        UsageError: Something is there already.
        InputError: The folder above is missing or read-only.
    """
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise InputError(f"{output.parent} is no folder that can be written to.", "Choose another -o.")
    for path, mark in _written(output).items():
        if not path.exists():
            continue
        if not force:
            left = path.suffix == PARTIAL
            why = "is left from an interrupted run, of which nothing was released" if left else "exists"
            raise UsageError(f"{path} {why}.", "Use --force to replace it, or another -o.")
        if not (path / mark).exists():
            raise UsageError(f"{path} was not written by atdp, so --force does not replace it.", "Choose another -o.")


def _written(output: Path) -> dict[Path, str]:
    """The folders of a run, each with a file that tells it from a folder of somebody else's."""
    return {
        output: LEDGER_FILE,
        beside(output, PRIVATE): JOURNAL_FILE,
        beside(output, PARTIAL): "private",
    }


@contextmanager
def workplace(output: Path, *, force: bool) -> Iterator[Workplace]:
    """A place to work, removed at the end; what is to stay is published before.

    An interruption by the operating system leaves OUT.partial/ with the journal.
    """
    check_output(output, force=force)
    partial = beside(output, PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    work = Workplace(model=partial / "model", private=partial / "private")
    partial.mkdir(mode=0o700)
    work.private.mkdir(mode=0o700)
    try:
        yield work
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def publish(work: Workplace, output: Path) -> None:
    """Rename both folders to OUT/ and OUT.private/; what they replace is removed only after both stand there."""
    for path in work.model.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    work.model.chmod(0o755)
    aside = work.model.parent / "replaced"
    aside.mkdir()
    for new, place in ((work.private, beside(output, PRIVATE)), (work.model, output)):
        if place.exists():
            place.rename(aside / place.name)
        new.rename(place)
