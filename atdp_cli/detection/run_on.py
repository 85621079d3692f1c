"""Tasks here or on Ray, which only this module knows. A task whose worker ends is retried; results come in any order.

A task gets two things: settings, which each worker fetches once, and an item. The caller gets the result.
"""

import contextlib
import functools
import os
import pickle
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from atdp_cli.detection.executor import AHEAD, BatchReader, OpenReader, check_workers, processes
from atdp_cli.detection.identity import code_identity
from atdp_cli.detection.spacy import Piece, Reading, read
from atdp_cli.errors import AtdpError, RunError, UsageError, require_package

Settings = TypeVar("Settings")

Item = TypeVar("Item")

Result = TypeVar("Result")

Begin = Callable[[Settings], Callable[[Item], Result]]
"""A worker's side of the work: from the settings to what is done with an item. A function of a module."""

Submit = Callable[[Item], Callable[[], Result]]
"""Hands an item to a worker, and gives what waits for its result."""

THIS_MACHINE = "local"
"""What Ray's library calls a Ray of its own."""

AUTO = "auto"
"""The address of the cluster that this machine is part of."""

_HOST_PORT = re.compile(r"(?P<host>(?<![\w.-])[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})")

RETRIES = 3
"""How often a task is restarted whose worker has ended."""

STARTS = 3
"""How often Ray is started: it gives up after 30 seconds, which may be too few on a machine with much else to do."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray would tell its makers about each run
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a warning about a coming default
    "RAY_task_oom_retries": str(RETRIES),  # without it a task that never fits is restarted for ever
}


@dataclass(frozen=True, kw_only=True)
class Ray:
    """Ray, started on this machine for the run, or a cluster that runs.

    Attributes:
        address: The cluster's, HOST:PORT, or `auto` on one of its machines; None to start Ray here.
        processors: How many tasks Ray runs at once where it is started here; a cluster knows itself.
    """

    address: str | None = None
    processors: int = 1

    def __post_init__(self) -> None:
        check_workers(self.processors)
        if self.address not in (None, AUTO) and not _HOST_PORT.fullmatch(self.address):
            raise UsageError(
                f"run.run-on=ray:{self.address} does not end in HOST:PORT.",
                "Run atdp on a machine of the cluster, with its HOST:PORT or with ray:auto.",
            )


def require_ray() -> None:
    """Raise UsageError unless the package ray is installed."""
    require_package("run.run-on=ray", "ray", "ray")


def submit_to(
    library: Any, begin: Begin[Settings, Item, Result], settings: Settings, *, processors: int = 1
) -> Submit[Item, Result]:
    """What hands items to workers.

    Args:
        library: From `connected`.
        begin: What workers do.
        settings: Sent once.
        processors: How many of them a task takes.

    Raises:
        UsageError: No machine has so many processors.
        RunError: From what waits: a worker ended more than `RETRIES` times.
        AtdpError: From what waits: what the work raised.
    """
    _check_size(library, processors)
    # As bytes, since the arrays of anything else would lie in shared memory, where the work cannot write.
    work = library.put(pickle.dumps((begin, settings)))
    remote = library.remote(num_cpus=processors, max_retries=RETRIES)(_task)
    # A reference that is an argument itself would be fetched for each task.
    return lambda item: partial(_result, library, remote.remote([work], item))


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error that was expected: as an exception it would come back as one of Ray's."""

    error: AtdpError


_begun: dict[Hashable, Callable[[Any], Any]] = {}


def _task(boxed: list[Any], item: Any) -> Any:
    import ray

    [work] = boxed
    try:
        if work not in _begun:
            begin, settings = pickle.loads(ray.get(work))  # noqa: S301 - what `submit_to` put there
            _begun.clear()
            _begun[work] = begin(settings)
        return _begun[work](item)
    except AtdpError as error:
        return _Failed(error)


def _result(library: Any, reference: Any) -> Any:
    lost = library.exceptions
    try:
        result = library.get(reference)
    except (lost.WorkerCrashedError, lost.OutOfMemoryError, lost.NodeDiedError) as error:
        raise RunError(
            f"A worker of Ray ended before its work was done, {1 + RETRIES} times ({type(error).__name__}).",
            "It may have run out of memory: use fewer at once.",
        ) from error
    except lost.RayTaskError:
        raise
    except lost.RayError as error:
        raise RunError(f"Ray ended before the work was done ({type(error).__name__}).", "Start again.") from error
    if isinstance(result, _Failed):
        raise result.error
    return result


@contextlib.contextmanager
def connected(ray: Ray) -> Iterator[Any]:
    """The library, connected to Ray; what was started ends with the block.

    A Ray that is started here asks for a token, which the library does not know where it was imported before.

    Raises:
        RunError: Ray cannot be started or reached.
    """
    with contextlib.ExitStack() as stack:
        if ray.address is None:
            # Ray opens its folder to everybody, and listens beyond this machine.
            folder = Path(tempfile.mkdtemp(prefix="atdp-ray-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _token()}
            stack.enter_context(_environment(_QUIET | secret))
            where = {"address": THIS_MACHINE, "num_cpus": ray.processors, "include_dashboard": False}
            where["_temp_dir"] = str(folder / "ray")
        else:
            stack.enter_context(_environment(_QUIET))
            where = {"address": ray.address}
        import ray as library

        _begin_or_join(library, where)
        stack.callback(library.shutdown)
        yield library


@functools.cache
def _token() -> str:
    """Who starts tasks where Ray is started here must know it. Ray's library reads the first one of a process alone."""
    return secrets.token_hex(32)


def _begin_or_join(library: Any, where: dict[str, Any]) -> None:
    here = where["address"] == THIS_MACHINE
    if not here:
        _check_answer(where["address"])
    for remaining in reversed(range(STARTS if here else 1)):
        try:
            library.init(**where, log_to_driver=False, logging_level="critical")
            return
        except Exception as error:  # Ray raises many kinds here, bare ones too
            library.shutdown()
            if remaining:
                continue
            place = "Ray could not be started" if here else f"The cluster of Ray at {where['address']} cannot be used"
            raise RunError(
                f"{place} ({type(error).__name__}).",
                "Check its version and its token, or use --set run.run-on=local.",
            ) from error


def _check_answer(address: str) -> None:
    """Raise RunError where nothing listens, for which Ray's library would wait for minutes."""
    match = _HOST_PORT.fullmatch(address)
    if match is None:
        return
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise RunError(
            f"No cluster of Ray answers at {address}.", "Check the address, or start one: ray start --head."
        ) from error


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """The environment with these values; afterwards it is as before, also without what Ray's library adds to it."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _check_size(library: Any, processors: int) -> None:
    largest = max((node["Resources"].get("CPU", 0) for node in library.nodes() if node["Alive"]), default=0)
    if largest < processors:
        raise UsageError(
            f"No machine of the cluster has {processors} processors for a task; the largest has {largest:.0f}.",
            "Give a smaller run.threads.",
        )


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
        raise UsageError(f"run.run-on={run_on} is not known.", "Choose local, ray or ray:HOST:PORT.")
    if address and workers != 1:
        raise UsageError(
            "run.workers is about this machine, and run.run-on=ray:HOST:PORT about others.", "Leave one out."
        )
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
def _readers(pipeline: Any, *, ray: Ray) -> Iterator[BatchReader]:
    with contextlib.ExitStack() as stack:

        @cache
        def tasks() -> BatchReader:
            library = stack.enter_context(connected(ray))
            ahead = AHEAD * int(library.cluster_resources().get("CPU", 1))
            return BatchReader(submit_to(library, _begin_reading, (pipeline, code_identity())), lambda: ahead)

        yield BatchReader(lambda pieces: tasks().submit(pieces), lambda: tasks().ahead())


def _begin_reading(settings: tuple[Any, bytes]) -> Callable[[Sequence[Piece]], list[Reading]]:
    pipeline, identity = settings
    if code_identity() != identity:
        raise RunError(
            "A worker of Ray has other versions of atdp or of its libraries, and might find other spans.",
            "Install the same ones on every machine.",
        )
    return lambda pieces: read(pieces, pipeline)
