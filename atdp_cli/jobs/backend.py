"""Where work is done: in this process, in several, or as tasks of Ray."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from atdp_cli.errors import RunError, UsageError
from atdp_cli.jobs.ray import Ray, connected, require_ray, submit_to
from atdp_cli.text.detection.executor import (
    AHEAD,
    BatchReader,
    OpenReader,
    check_workers,
    picklable,
    processes,
    unpickled,
)
from atdp_cli.text.detection.identifiers import Recogniser
from atdp_cli.text.detection.identity import code_identity
from atdp_cli.text.detection.spacy_reader import Piece, Reading, read


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes that this one starts; with one, it is this process. Models are taken one by one in it."""

    workers: int = 1

    def __post_init__(self) -> None:
        check_workers(self.workers)


Executor = Local | Ray

LOCAL, RAY = "local", "ray"

THIS_PROCESS = Local()
"""This process."""


def make_executor(run_on: str, workers: int) -> Executor:
    """Where work is done.

    Args:
        run_on: local, ray, or ray:HOST:PORT.
        workers: How many processes are started here.

    Raises:
        UsageError: It is none of these, options contradict each other, or Ray is not installed.
    """
    if run_on == LOCAL:
        return Local(workers=workers)
    name, _, address = run_on.partition(":")
    if name != RAY:
        raise UsageError(f"--run-on {run_on} is not known.", "Choose local, ray or ray:HOST:PORT.")
    if address and workers != 1:
        raise UsageError("--workers is about this machine, and --run-on ray:HOST:PORT about others.", "Leave one out.")
    require_ray()
    return Ray(address=address or None, processors=workers)


def text_engine(executor: Executor) -> OpenReader:
    """Where batches of text are read.

    Raises:
        UsageError: No number of processes, or Ray is not installed.
    """
    return processes(executor.workers) if isinstance(executor, Local) else ray_executor(executor)


def ray_executor(ray: Ray) -> OpenReader:
    """The engine that reads batches of text as tasks of one processor; Ray begins with the first batch.

    Raises:
        UsageError: Ray is not installed.
    """
    require_ray()
    return partial(_readers, ray=ray)


@contextlib.contextmanager
def _readers(pipeline: Any, recognisers: Sequence[Recogniser], *, ray: Ray) -> Iterator[BatchReader]:
    with contextlib.ExitStack() as stack:

        @cache
        def tasks() -> BatchReader:
            library = stack.enter_context(connected(ray))
            settings = (pipeline, picklable(recognisers), code_identity())
            ahead = AHEAD * int(library.cluster_resources().get("CPU", 1))
            return BatchReader(submit_to(library, _begin_reading, settings), lambda: ahead)

        yield BatchReader(lambda pieces: tasks().submit(pieces), lambda: tasks().ahead())


def _begin_reading(
    settings: tuple[Any, Sequence[Recogniser] | None, bytes],
) -> Callable[[Sequence[Piece]], list[Reading]]:
    pipeline, recognisers, identity = settings
    if code_identity() != identity:
        raise RunError(
            "A worker of Ray has other versions of atdp or of its libraries, and might find other spans.",
            "Install the same ones on every machine.",
        )
    recognise = unpickled(recognisers)
    return lambda pieces: read(pieces, pipeline, recognise)
