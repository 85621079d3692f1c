"""The write-ahead journal: the privacy that a step spends is on disk before the step is applied."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.files.atomic_write import atomic_rewrite, sync_folder
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.ledger import LedgerEvent, PrivateEvent, compact, private_events

JOURNAL_FILE = "journal.jsonl"

_EVENT: TypeAdapter[LedgerEvent] = TypeAdapter(LedgerEvent)


@contextmanager
def open_journal(path: Path) -> Iterator[TextIO]:
    """An append-only journal, private to its owner."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as journal:
        sync_folder(path.parent)
        yield journal


def spend(journal: TextIO, event: LedgerEvent) -> None:
    """Record `event` and return only once it is on disk."""
    journal.write(_line(event))
    journal.flush()
    os.fsync(journal.fileno())


def read_journal(path: Path) -> tuple[LedgerEvent, ...]:
    """The events in the journal, neighbouring equal steps merged.

    Raises:
        InputError: The file cannot be read, or a line is no event.
    """
    return compact(_events(path, _content(path)))


def journal_lines(path: Path) -> tuple[tuple[int, LedgerEvent], ...]:
    """Each event in the order in which it was written, with the size in bytes that the journal had after it.

    Raises:
        InputError: The file cannot be read, or a line is no event.
    """
    content = _content(path)
    sizes = accumulate(len(line) for line in content.splitlines(keepends=True))
    return tuple(zip(sizes, _events(path, content), strict=True))


def mend_journal(path: Path, planned: Sequence[LedgerEvent], delta: float) -> tuple[LedgerEvent, ...]:
    """The events in the journal of an interrupted run, after an incomplete last line was completed in the file.

    An incomplete line was written for a step or a release that never happened. It counts as the costliest of the
    planned events that start like it, or of all planned events where none does. That a stage trained or read a model
    costs nothing, and is written again when the stage starts again.

    Args:
        planned: Every event that the run could have been about to write.
        delta: The δ at which costs are compared.

    Raises:
        InputError: The file cannot be read, or a complete line is no event.
        RunError: It cannot be written.
    """
    if not path.exists():
        return ()
    content = _content(path)
    whole, end, torn = content.rpartition(b"\n")
    spent = _events(path, whole)
    if not torn:
        return compact(spent)
    completed = [] if (event := _costliest(torn, private_events(planned), delta)) is None else [event]
    atomic_rewrite(path, whole + end + "".join(map(_line, completed)).encode())
    return compact([*spent, *completed])


def _costliest(torn: bytes, planned: Sequence[PrivateEvent], delta: float) -> PrivateEvent | None:
    """The event that an incomplete line counts as; None where it can only be one that costs nothing."""
    possible = [event for event in dict.fromkeys(planned) if _line(event).encode().startswith(torn)]
    if not possible and not torn.startswith((b'{"kind":"plain"', b'{"kind":"read_model"')):
        possible = list(dict.fromkeys(planned))
    return max(possible, key=lambda event: epsilon_pld([event], delta, grid=grid_for([event])), default=None)


def _line(event: LedgerEvent) -> str:
    return event.model_dump_json() + "\n"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}), so it is not known what was spent.",
            "Try again once it can be read; --force starts over and discards what was trained.",
        ) from error


def _events(path: Path, content: bytes) -> list[LedgerEvent]:
    events = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            events.append(_EVENT.validate_json(line))
        except ValidationError as error:
            raise InputError(f"{path}: line {number} is not a journal entry.", "Start the run again.") from error
    return events
