"""Structured identifiers: patterns and checksums that need no language model."""

from collections.abc import Callable, Iterable

Found = tuple[int, int, str]
"""(start, end, label): code points of the text, end exclusive."""

Recogniser = Callable[[str], Iterable[Found]]

RECOGNISERS: tuple[Recogniser, ...] = ()
