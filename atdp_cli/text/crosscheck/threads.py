"""A few threads that do jobs beside the caller; they never hold up the end of the process."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue

Wait = Callable[[float], None]
"""Sleeps so many seconds; raises `StoppedError` as soon as the work has ended."""

Job = Callable[[Wait], bool | None]
"""Answers a question, or says by None that there is no answer."""

SubmitJob = Callable[[Job], "Future[bool | None]"]
"""Hands a job to the threads."""


class StoppedError(Exception):
    """The work has ended while a job was waiting or before it began."""


@contextmanager
def thread_pool(size: int) -> Iterator[SubmitJob]:
    """Threads that do the jobs handed to them until the block ends or a job fails.

    The first failure stops all jobs that have not begun or that wait, and is what the block raises, whichever
    job's result it was looking at. When the block ends, jobs in progress are left behind.

    Args:
        size: How many jobs run at once.
    """
    # ThreadPoolExecutor would make the process wait at its end for every request that is on its way.
    stop, failures = threading.Event(), list[BaseException]()
    jobs: SimpleQueue[tuple[Job, Future[bool | None]] | None] = SimpleQueue()

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise StoppedError

    def work() -> None:
        while (submitted := jobs.get()) is not None:
            job, future = submitted
            try:
                wait(0)
                result = job(wait)
            except BaseException as error:
                if not stop.is_set():
                    failures.append(error)
                    stop.set()
                future.set_exception(error)
            else:
                future.set_result(result)

    def submit(job: Job) -> "Future[bool | None]":
        future: Future[bool | None] = Future()
        jobs.put((job, future))
        return future

    for _ in range(size):
        threading.Thread(target=work, daemon=True).start()
    try:
        yield submit
    except StoppedError:
        raise failures[0] from None
    finally:
        stop.set()
        for _ in range(size):
            jobs.put(None)
