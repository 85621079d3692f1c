"""A task of Ray for each of many models, done as it would be done here."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from atdp_cli.errors import AtdpError, RunError
from atdp_cli.events import Event, FellBack, Notify, RecordsRead
from atdp_cli.jobs.machine import cores
from atdp_cli.jobs.onray import Ray, connected, handed_to

Result = TypeVar("Result")

Work = Callable[[Path, Notify], Result]
"""What is done with a model's folder; a function of a module, or a partial one."""


@dataclass(frozen=True, kw_only=True)
class _Settings(Generic[Result]):
    """What a worker is told.

    Attributes:
        place: The working folder, which relative paths begin at.
        threads: Sums over other numbers of threads differ in their last bits.
    """

    work: Work[Result]
    place: Path
    threads: int


def on_each(ray: Ray, models: Sequence[Path], work: Work[Result], notify: Notify) -> Iterator[Result | AtdpError]:
    """What the work gives for each model, or why it could not be done, in order.

    A task takes as many processors as torch has threads here. Of its events those are told that say what a user might
    not expect.

    Raises:
        RunError: Ray cannot be started or reached.
        UsageError: No machine has so many processors.
    """
    threads = torch.get_num_threads()
    settings = _Settings(work=work, place=Path.cwd(), threads=threads)
    with connected(replace(ray, processors=max(threads, cores()))) as library:
        submit = handed_to(library, _begin, settings, processors=threads)
        waiting = [submit(model) for model in models]
        for done, wait in enumerate(waiting, start=1):
            try:
                found, heard = wait()
            except AtdpError as error:
                yield error
            else:
                for event in heard:
                    notify(event)
                yield found
            notify(RecordsRead(task="models on Ray", done=done, total=len(models)))


def _begin(settings: _Settings[Any]) -> Callable[[Path], tuple[Any, list[Event]]]:
    try:
        os.chdir(settings.place)
    except OSError as error:
        raise RunError(
            f"A worker of Ray has no folder {settings.place}.", "Work in a folder that all machines see by one path."
        ) from error
    torch.set_num_threads(settings.threads)

    def done(model: Path) -> tuple[Any, list[Event]]:
        heard: list[Event] = []
        return settings.work(model, heard.append), [event for event in heard if isinstance(event, FellBack)]

    return done
