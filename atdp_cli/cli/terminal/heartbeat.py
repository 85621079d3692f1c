"""A sign of life in a pipe: a line where nothing else has been printed for a while, as while a large model loads."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENCE = 9.5
"""Seconds without a line before one is due, so that ten never pass without."""


@contextmanager
def heartbeat(
    printed: Callable[[], float], say: Callable[[str], object], silence: float | None = None
) -> Iterator[None]:
    """While this lasts, say how long it has lasted whenever nothing was printed for so many seconds.

    Args:
        printed: When the last line was printed, by `time.monotonic`.
        say: Prints a line, from another thread.
        silence: Seconds; None for `SILENCE`.
    """
    began, over, silence = time.monotonic(), threading.Event(), SILENCE if silence is None else silence

    def watch() -> None:
        last = began
        while not over.wait(max(0.0, max(last, printed()) + silence - time.monotonic())):
            now = time.monotonic()
            if now - max(last, printed()) >= silence:
                last = now
                say(f"Still at work after {now - began:.0f} s.")

    watcher = threading.Thread(target=watch, name="atdp-heartbeat", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
