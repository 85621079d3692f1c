"""Batches of texts, read in this process or in several."""

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from atdp_cli.errors import RunError
from atdp_cli.text.identifiers import RECOGNISERS, Recogniser, Recognisers
from atdp_cli.text.reading import Piece, Reading, read

Item = TypeVar("Item")

MOST_JOBS = 1024

AHEAD = 2
"""Batches a process: one that it reads, and one that waits."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[Item]):
    """Items of the caller, and the texts among them that have to be read."""

    items: Sequence[Item]
    pieces: Sequence[Piece]


def readings(
    batches: Iterable[Batch[Item]], pipeline: Any, recognisers: Sequence[Recogniser], *, jobs: int
) -> Iterator[tuple[Batch[Item], list[Reading]]]:
    """Each batch with the readings of its pieces, in order; a few batches are taken ahead.

    Args:
        batches: The batches.
        pipeline: A spaCy pipeline.
        recognisers: The recognisers; where the system starts processes afresh, others than the default ones
            must be functions of a module.
        jobs: Processes, at least 1. They are started when there is something to read.

    Raises:
        RunError: A process ended before its work was done.
    """
    if jobs == 1:
        recognise = Recognisers(recognisers)
        for batch in batches:
            yield batch, read(batch.pieces, pipeline, recognise)
        return
    with contextlib.ExitStack() as stack:
        submit = _lazily(stack, pipeline, recognisers, jobs)
        waiting: deque[tuple[Batch[Item], Future[list[Reading]] | None]] = deque()
        for batch in batches:
            waiting.append((batch, submit(batch.pieces) if batch.pieces else None))
            # What is known already waits for what stands before it only.
            while waiting and (waiting[0][1] is None or len(waiting) > AHEAD * jobs):
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())


def _done(batch: Batch[Item], future: Future[list[Reading]] | None) -> tuple[Batch[Item], list[Reading]]:
    if future is None:
        return batch, []
    try:
        return batch, future.result()
    except BrokenProcessPool as error:
        raise RunError(
            "A process of the detector ended before its work was done.",
            "It may have run out of memory: use fewer --jobs.",
        ) from error


def _lazily(
    stack: contextlib.ExitStack, pipeline: Any, recognisers: Sequence[Recogniser], jobs: int
) -> Callable[[Sequence[Piece]], Future[list[Reading]]]:
    """Hands a batch to processes that are started with the first one, and ended by `stack`."""
    pool: ProcessPoolExecutor | None = None

    def submit(pieces: Sequence[Piece]) -> Future[list[Reading]]:
        nonlocal pool
        if pool is None:
            # The default recognisers are closures, which cannot be sent to a process that starts afresh.
            others = None if recognisers is RECOGNISERS else recognisers
            pool = ProcessPoolExecutor(jobs, initializer=_start, initargs=(pipeline, others))
            stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        return pool.submit(_read_here, pieces)

    return submit


_here: list[tuple[Any, Recognisers]] = []


def _start(pipeline: Any, recognisers: Sequence[Recogniser] | None) -> None:
    # An interrupt from the keyboard reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here[:] = [(pipeline, Recognisers(RECOGNISERS if recognisers is None else recognisers))]


def _read_here(pieces: Sequence[Piece]) -> list[Reading]:
    [(pipeline, recognise)] = _here
    return read(pieces, pipeline, recognise)
