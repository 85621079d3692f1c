"""What asks a command to stop: Ctrl-C, and SIGTERM, by which schedulers and containers end a process."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM)

STOPPING = b"\natdp: stopping after this step; once more to stop at once.\n"


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """While this lasts SIGTERM ends a command as Ctrl-C does, with all that it has to clear away."""
    with _handled({signal.SIGTERM: signal.default_int_handler}):
        yield


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """While this lasts the first signal asks for a stop, and tells whoever asks; the second stops at once."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if heard:
            signal.default_int_handler(number, frame)
        heard.append(number)
        # What the main thread was printing when the signal came must not be entered a second time.
        os.write(2, STOPPING)

    with _handled(dict.fromkeys(STOPS, hear)):
        yield lambda: bool(heard)


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    """While this lasts the signals have these handlers; one that was ignored before still is."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may say what signals do.
        return
    before = {number: signal.getsignal(number) for number in handlers}
    try:
        for number, handler in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
