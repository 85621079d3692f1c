"""The logs of a run: the journal of what it is about to spend, the trace of what it then used."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from atdp_cli.hardening.workspace import Workspace
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import LedgerEvent, PlainTraining, ReadModel
from atdp_cli.privacy.trace import Trace, open_trace
from atdp_cli.training.parallel.ranks import Ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class StageLogs:
    """Where a stage writes both."""

    journal: TextIO
    trace: Trace


@contextmanager
def open_logs(work: Workspace, ranks: Ranks) -> Iterator[Callable[[int, Sequence[LedgerEvent]], StageLogs]]:
    """(position of a stage in the recipe, what it will spend) → its books.

    That it trains without protection, or reads a model, is in the journal from then on, once for all sessions.
    """
    with open_journal(work.journal) as journal:
        spent = read_journal(work.journal)
        size = work.journal.stat().st_size
        with open_trace(work.trace, journal=size, rank=ranks.rank, processes=ranks.size) as trace_of:

            def logs_of(position: int, events: Sequence[LedgerEvent]) -> StageLogs:
                for event in events:
                    if isinstance(event, ReadModel | PlainTraining) and event not in spent:
                        spend(journal, event)
                return StageLogs(journal=journal, trace=trace_of(position))

            yield logs_of
