"""The format of the word lists that ship with the package: terms under headings."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def read_lists(path: Path, separator: str | None = None) -> Mapping[str, tuple[str, ...]]:
    """The terms under each `[heading]` of a file; those before the first heading have the name `""`.

    Args:
        path: A UTF-8 file. Lines that begin with `#` are comments.
        separator: What parts the terms of a line; None for white space.
    """
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line[1:-1]
        elif not line.startswith("#"):
            terms = map(str.strip, line.split(separator))
            sections.setdefault(heading, []).extend(term for term in terms if term)
    return {heading: tuple(terms) for heading, terms in sections.items()}
