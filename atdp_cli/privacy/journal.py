"""The write-ahead journal: what a step spends is on disk before the step is applied."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.files.fsync import sync_folder
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
    """What the journal says was spent, equal neighbours together.

    Raises:
        InputError: The file cannot be read, or a line is no event.
    """
    return compact(_events(path, _content(path)))


def mend_journal(path: Path, planned: Sequence[LedgerEvent], delta: float) -> tuple[LedgerEvent, ...]:
    """What the journal of a run that broke off says was spent, a torn last line made whole.

    A torn line was written for a step or a release that never came, and counts as the dearest of the planned events
    that it can be the beginning of, or of all where it is the beginning of none. That a stage trained or read is no
    cost, and is written again when the stage begins again.

    Args:
        planned: Every event that the run could have been about to write.
        delta: At which δ events are dear.

    Raises:
        InputError: The file cannot be read, or a whole line is no event.
        OSError: It cannot be written.
    """
    if not path.exists():
        return ()
    content = _content(path)
    whole, end, torn = content.rpartition(b"\n")
    spent = _events(path, whole)
    if not torn:
        return compact(spent)
    meant = _dearest(torn, private_events(planned), delta)
    added = "" if meant is None else _line(meant)
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as mended:
        mended.write(whole + end + added.encode())
        mended.flush()
        os.fsync(mended.fileno())
    part.replace(path)
    sync_folder(path.parent)
    return compact(spent if meant is None else (*spent, meant))


def _dearest(torn: bytes, planned: Sequence[PrivateEvent], delta: float) -> PrivateEvent | None:
    """The event that a torn line counts as; None where it can only be one that costs nothing."""
    possible = [event for event in dict.fromkeys(planned) if _line(event).encode().startswith(torn)]
    if not possible and not _free(torn):
        possible = list(dict.fromkeys(planned))
    return max(possible, key=lambda event: epsilon_pld([event], delta, grid=grid_for([event])), default=None)


def _free(torn: bytes) -> bool:
    """Whether a line begins as those do that cost nothing."""
    return torn.startswith((b'{"kind":"plain"', b'{"kind":"read_model"'))


def _line(event: LedgerEvent) -> str:
    return event.model_dump_json() + "\n"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}), so it is not known what was spent.",
            "Try again once it can be; --force starts anew, from nothing that was trained.",
        ) from error


def _events(path: Path, content: bytes) -> list[LedgerEvent]:
    events = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            events.append(_EVENT.validate_json(line))
        except ValidationError as error:
            raise InputError(f"{path}: line {number} is not a journal entry.", "Start the run again.") from error
    return events
