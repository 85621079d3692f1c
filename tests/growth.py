"""How the time of some work grows with the length of its text: a law that holds on any machine, unlike seconds."""

import time
from collections import deque
from collections.abc import Callable, Iterable

SMALL, LARGE = 3_000, 24_000
"""Characters."""

SHORT = 0.03
"""Seconds of the processor; about a microsecond a character is fast, whatever it grows with."""

STEEP = 24
"""For a text 8 times as long: linear growth is 8, quadratic is 64."""

SLOW = 250e-6
"""Seconds of the processor for a character: too many on any machine, whatever they grow with. IBANs take 45 µs."""

TRIES = 5

Work = Callable[[str], object]
Text = Callable[[int], str]


def too_slow(work: Work, text: Text, times: int = 1) -> bool:
    """Whether work on `text(length)` grows faster than the length, from SMALL to LARGE (so many times), or is SLOW.

    It is so if it looks so every time, since other work on the machine can make it look so once.
    """
    small, large = text(SMALL * times), text(LARGE * times)
    return all(looks_slow(work, small, large) for _ in range(TRIES))


def looks_slow(work: Work, small: str, large: str) -> bool:
    """Whether it does by one run on the large text and the quickest of three on the small one."""
    taken = seconds(work, large)
    if taken > SLOW * len(large):
        return True
    return taken > SHORT and taken > STEEP * min(seconds(work, small) for _ in range(3))


def seconds(work: Work, text: str) -> float:
    """Of the processor, for one run."""
    start = time.process_time()
    work(text)
    return time.process_time() - start


def drained(search: Callable[[str], Iterable[object]]) -> Work:
    """All that a search finds, and nothing kept."""
    return lambda text: deque(search(text), maxlen=0)


def repeated(part: str, end: str = "") -> Text:
    """Texts of one part again and again, with an end of their own."""
    return lambda length: (part * length)[:length] + end
