"""The context of a run's stages: model, reference, data, streams, clipping engine, journal and trace."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from transformers import PreTrainedModel

from atdp_cli.events import Notify
from atdp_cli.hardening.budget import Cursor
from atdp_cli.hardening.checkpoint import Checkpointer
from atdp_cli.hardening.data import EpochData, RunData
from atdp_cli.hardening.workspace import Workspace
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import LedgerEvent, PlainTraining, ReadModel
from atdp_cli.privacy.rng import KeyStream, insecure_stream, new_key, secure_stream
from atdp_cli.privacy.trace import Trace, open_trace
from atdp_cli.training.clip.engine import ClippingEngine
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.collectives import broadcast_bytes
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks


@dataclass(frozen=True, kw_only=True)
class Streams:
    """The random streams of a run.

    Attributes:
        seed: With a seed the streams are reproducible, and protect nobody; None to key them by the operating system.
        ranks: Several processes share each key: the first draws it and broadcasts it.
        session: How often the run was interrupted before.
    """

    seed: int | None
    ranks: Ranks = SINGLE_PROCESS
    session: int = 0

    def stream(self, stage: int, purpose: str) -> KeyStream:
        """A separate stream for one purpose of the stage at a position."""
        if self.seed is not None:
            return insecure_stream(self.seed, f"{purpose} of stage {stage}")
        return secure_stream() if self.ranks.size == 1 else KeyStream(broadcast_bytes(self.ranks, new_key()))

    def fresh_stream(self, stage: int, purpose: str) -> KeyStream:
        """As `stream`, but a resumed run gets another one even from a seed."""
        return self.stream(stage, f"{purpose} after interruption {self.session}" if self.session else purpose)

    def order_seed(self) -> int | None:
        """A seed for the order of a plain stage that all processes share; None where the stage draws its own."""
        if self.seed is not None or self.ranks.size == 1:
            return self.seed
        return int.from_bytes(broadcast_bytes(self.ranks, new_key())[:7], "big")


@dataclass(frozen=True, kw_only=True, eq=False)
class StageContext:
    """The context that every stage works with.

    Attributes:
        reference: The model that some stages read.
        epoch_data: The records of each epoch; None where term lists are read once.
        end: Where the run has to end, as `allowance` has it; None where it may go to its end.
    """

    model: PreTrainedModel
    reference: PreTrainedModel | None
    data: RunData
    streams: Streams
    engine: ClippingEngine
    epoch_data: EpochData | None
    notify: Notify
    precision: Precision
    end: Cursor | None
    checkpointer: Checkpointer


@dataclass(frozen=True, kw_only=True, eq=False)
class StageLogs:
    """The journal of what a stage is about to spend, and the trace of what it then used."""

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
