"""Where work is done: in this process, in several, or as tasks of Ray."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from atdp_cli.errors import RunError
from atdp_cli.jobs.ray import Ray, connected, require_ray, submit_to
from atdp_cli.text.detection.executor import AHEAD, Executor, OpenExecutor, check_jobs, picklable, processes, unpickled
from atdp_cli.text.detection.identifiers import Recogniser
from atdp_cli.text.detection.identity import code_identity
from atdp_cli.text.detection.spacy_reader import Piece, Reading, read


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes that this one starts; with one, it is this process. Models are taken one by one in it."""

    jobs: int = 1

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


Backend = Local | Ray

THIS_PROCESS = Local()
"""This process."""


def text_engine(engine: Backend) -> OpenExecutor:
    """Where batches of text are read.

    Raises:
        UsageError: No number of processes, or Ray is not installed.
    """
    return processes(engine.jobs) if isinstance(engine, Local) else ray_executor(engine)


def ray_executor(ray: Ray) -> OpenExecutor:
    """The engine that reads batches of text as tasks of one processor; Ray begins with the first batch.

    Raises:
        UsageError: Ray is not installed.
    """
    require_ray()
    return partial(_readers, ray=ray)


@contextlib.contextmanager
def _readers(pipeline: Any, recognisers: Sequence[Recogniser], *, ray: Ray) -> Iterator[Executor]:
    with contextlib.ExitStack() as stack:

        @cache
        def tasks() -> Executor:
            library = stack.enter_context(connected(ray))
            settings = (pipeline, picklable(recognisers), code_identity())
            ahead = AHEAD * int(library.cluster_resources().get("CPU", 1))
            return Executor(submit_to(library, _begin_reading, settings), lambda: ahead)

        yield Executor(lambda pieces: tasks().submit(pieces), lambda: tasks().ahead())


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
