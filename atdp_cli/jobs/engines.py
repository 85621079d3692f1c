"""Where work on corpora and on many models is done: on this machine, or on Ray."""

from dataclasses import dataclass

from atdp_cli.jobs.onray import Ray, reading_on
from atdp_cli.text.workers import Engine as TextEngine
from atdp_cli.text.workers import check_jobs, processes


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes that this one starts; with one, it is this process. Models are taken one by one in it."""

    jobs: int = 1

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


Engine = Local | Ray

ALONE = Local()
"""This process."""


def text_engine(engine: Engine) -> TextEngine:
    """Where batches of text are read.

    Raises:
        UsageError: No number of processes, or Ray is not installed.
    """
    return processes(engine.jobs) if isinstance(engine, Local) else reading_on(engine)
