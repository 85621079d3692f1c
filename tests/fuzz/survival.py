"""What no input may do to a reader: raise anything but a plain line, warn, quote a secret, or fill the memory."""

import contextlib
import gc
import random
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from atdp_cli.errors import AtdpError

INPUTS = [500, pytest.param(100_000, marks=pytest.mark.deep)]
"""How many inputs each reader survives, quickly and in the deep run."""

NUMBER = "493021"
SECRET = f"Quill {NUMBER}"
"""What stands in records and canaries. Its number is like no name and no place."""

ROOM = 1 << 29
"""Bytes of address space that a reader may take for inputs of some kilobytes."""

LONGEST = 2_000
"""Characters of a message, for names that are not made of what must be escaped."""

AT_ONCE = 20
"""Inputs an example: hypothesis takes longer for an example than a reader for an input."""

_STATM = Path("/proc/self/statm")

_C = TypeVar("_C")


class Choices:
    """What decides how an input is made: all follows from a seed."""

    def __init__(self, seed: bytes) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """A number from 0 to below `bound`."""
        return self._random.randrange(bound)

    def of(self, options: Sequence[_C]) -> _C:
        """One of these."""
        return self._random.choice(options)


Make = Callable[[Choices], _C]


def survive(inputs: int, ways: Sequence[Make[_C]], read: Callable[[_C], object], *, valid: Iterable[_C]) -> None:
    """`read` takes what is valid, and survives so many inputs made in these ways, the same in every run."""
    for case in valid:
        read(case)

    # Without a phase that makes a failing input simpler: it is three changes away from a valid one, and printed.
    @seed(0)
    @settings(
        max_examples=inputs // AT_ONCE,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=8, max_size=8))
    def every(start: bytes) -> None:
        choices = Choices(start)
        with _limited_memory(), _no_collection():
            for _ in range(AT_ONCE):
                case = choices.of(ways)(choices)
                try:
                    check(read, case)
                except BaseException:
                    note(f"the input: {case!r}")
                    raise

    every()


def check(read: Callable[[_C], object], case: _C) -> None:
    """`read` returns, or says in one printable line what is wrong."""
    error = _refusal(read, case)
    if error is None:
        return
    reported = str(error)
    assert reported.isprintable()
    assert len(reported) <= LONGEST
    assert NUMBER not in reported
    assert not any(isinstance(cause, MemoryError) for cause in _causes(error))


def _refusal(read: Callable[[_C], object], case: _C) -> AtdpError | None:
    try:
        read(case)
    except AtdpError as error:
        return error
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield cause
        yield from _causes(cause)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Inside a document that nests to the limit no finaliser of hypothesis' own garbage could call anything."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _limited_memory() -> Iterator[None]:
    """No more than `ROOM` beyond what the process has, where the system tells and limits it."""
    if not _STATM.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
