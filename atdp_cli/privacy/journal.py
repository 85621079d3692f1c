"""The write-ahead journal: what a step spends is on disk before the step is applied."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pydantic import TypeAdapter, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.privacy.ledger import LedgerEvent, compact

JOURNAL_FILE = "journal.jsonl"

_EVENT: TypeAdapter[LedgerEvent] = TypeAdapter(LedgerEvent)


@contextmanager
def open_journal(path: Path) -> Iterator[TextIO]:
    """An append-only journal, private to its owner."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as journal:
        yield journal


def spend(journal: TextIO, event: LedgerEvent) -> None:
    """Record `event` and return only once it is on disk."""
    journal.write(event.model_dump_json() + "\n")
    journal.flush()
    os.fsync(journal.fileno())


def read_journal(path: Path) -> tuple[LedgerEvent, ...]:
    """What the journal says was spent, equal neighbours together.

    Raises:
        InputError: It cannot be read, or a line is no event.
    """
    events = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read as a journal.", "Start the run again.") from error
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_EVENT.validate_json(line))
        except ValidationError as error:
            raise InputError(f"{path}: line {number} is not a journal entry.", "Start the run again.") from error
    return compact(events)
