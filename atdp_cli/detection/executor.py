"""Readers of batches of texts: in this process, in several processes, or elsewhere."""

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, TypeVar

from atdp_cli.detection.spacy import Piece, Reading, read
from atdp_cli.errors import RunError
from atdp_cli.settings import require_at_least, require_at_most

Item = TypeVar("Item")

MAX_WORKERS = 1024

AHEAD = 2
"""Batches a process: one that it reads, and one that waits."""


@dataclass(frozen=True, slots=True)
class TextBatch(Generic[Item]):
    """Items of the caller, and the texts among them that must be read."""

    items: Sequence[Item]
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class BatchReader:
    """A place where batches are read.

    Attributes:
        submit: Has pieces read, and gives what waits for their readings.
        ahead: Says, once there was a batch, how many may be on their way while the first of them is waited for.
    """

    submit: Callable[[Sequence[Piece]], Callable[[], list[Reading]]]
    ahead: Callable[[], int]


OpenReader = Callable[[Any], AbstractContextManager[BatchReader]]
"""Opens a reader for a pipeline; work begins with the first batch, and ends with the block."""


def readings(
    batches: Iterable[TextBatch[Item]], reader: BatchReader
) -> Iterator[tuple[TextBatch[Item], list[Reading]]]:
    """Read batches and yield each with its readings, in order. A few batches are taken ahead.

    Raises:
        RunError: A process ended before its work was done.
    """
    waiting: deque[tuple[TextBatch[Item], Callable[[], list[Reading]]]] = deque()

    def first() -> tuple[TextBatch[Item], list[Reading]]:
        batch, wait = waiting.popleft()
        return batch, wait()

    for batch in batches:
        waiting.append((batch, reader.submit(batch.pieces) if batch.pieces else list))
        # What is known already waits for what stands before it only.
        while waiting and (not waiting[0][0].pieces or len(waiting) > reader.ahead()):
            yield first()
    while waiting:
        yield first()


@contextlib.contextmanager
def in_process(pipeline: Any) -> Iterator[BatchReader]:
    """Read in this process; an `OpenReader`."""
    yield BatchReader(lambda pieces: partial(read, pieces, pipeline), ahead=lambda: 0)


def processes(workers: int) -> OpenReader:
    """Read in this many processes; with one, in this process.

    Raises:
        UsageError: `workers` is below 1 or above `MAX_WORKERS`.
    """
    check_workers(workers)
    return in_process if workers == 1 else partial(_several, workers=workers)


def check_workers(workers: int) -> None:
    """Raise UsageError unless this is a number of processes, at most `MAX_WORKERS`."""
    require_at_least("workers", workers, 1)
    require_at_most("workers", workers, MAX_WORKERS)


@contextlib.contextmanager
def _several(pipeline: Any, *, workers: int) -> Iterator[BatchReader]:
    with contextlib.ExitStack() as stack:

        @cache
        def pool() -> ProcessPoolExecutor:
            started = ProcessPoolExecutor(workers, initializer=_start, initargs=(pipeline,))
            stack.callback(started.shutdown, wait=True, cancel_futures=True)
            return started

        yield BatchReader(lambda pieces: partial(_result, pool().submit(_read_here, pieces)), lambda: AHEAD * workers)


def _result(future: Future[list[Reading]]) -> list[Reading]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise RunError(
            "A process of the detector ended before its work was done.",
            "It may have run out of memory: use a smaller run.workers.",
        ) from error


_here: list[Any] = []
"""In a process of its own: the pipeline that it reads with."""


def _start(pipeline: Any) -> None:
    # An interrupt from the keyboard reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here[:] = [pipeline]


def _read_here(pieces: Sequence[Piece]) -> list[Reading]:
    [pipeline] = _here
    return read(pieces, pipeline)
