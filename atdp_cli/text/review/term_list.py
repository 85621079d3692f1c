"""Lists of terms that are written by a program beside what people wrote in them."""

import re
from pathlib import Path

from atdp_cli.files.atomic_write import atomic_rewrite
from atdp_cli.files.corpus_file import LONE_SURROGATE, raw_lines
from atdp_cli.text.detection.term_lists import literal, read_terms


def term_line(term: str) -> str:
    """The line of a list that stands for a literal term, whatever it looks like; see `read_terms`."""
    line = " ".join(term.split())
    misread = line.startswith(("#", "\ufeff")) or (len(line) > 2 and line[0] == line[-1] == "/")
    return _expression(literal(term).pattern, term) if misread or LONE_SURROGATE.search(line) else line


def line_at(text: str, start: int, end: int) -> str | None:
    """The line of a list whose pattern matches characters `start` to `end` of a text; None for white space alone.

    It is that of a literal term where the characters are whole words, else one that matches within words too.
    """
    term = text[start:end].strip()
    if not term:
        return None
    at = text.index(term, start)
    if literal(term).match(text, at):
        return term_line(term)
    return _expression(_GAP.join(map(re.escape, term.split())), term)


_GAP = r"\s+"
"""Between the words of a term, as `literal` has it."""


def _expression(pattern: str, term: str) -> str:
    """The line for a pattern of a term. The library that searches with a bound on time takes some white space for
    none."""
    if re.search(r"[\x1c-\x1f]", term):
        pattern = pattern.replace(_GAP, r"[\s\x1c-\x1f]+")
    plain = LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", pattern)
    return f"/(?i){plain}/"


def add_line(path: Path, line: str) -> bytes:
    """Put a line at the end of a list unless a line of the list says the same already.

    A new list is its owner's alone (mode 0600).

    Returns:
        The bytes that were added, for `take_back`; empty where nothing was.

    Raises:
        InputError: The list cannot be read, or its folder is missing.
        RunError: The list cannot be written.
    """
    content = _content(path)
    if _says(content.decode("utf-8", "replace"), line):
        return b""
    added = (b"" if content.endswith(b"\n") or not content else b"\n") + line.encode("utf-8") + b"\n"
    atomic_rewrite(path, content + added)
    return added


def _says(content: str, line: str) -> bool:
    present = [term.strip() for term in content.split("\n")]
    expression = len(line) > 2 and line[0] == line[-1] == "/"
    return line in present or (not expression and any(literal(term).fullmatch(line) for term in present))


def take_back(path: Path, added: bytes) -> None:
    """Undo `add_line`, also where somebody has written into the list since; a list without the line stays as it is."""
    content = _content(path)
    if content.endswith(added):
        atomic_rewrite(path, content[: -len(added)])
        return
    line = added.lstrip(b"\n")
    at = (b"\n" + content).rfind(b"\n" + line)
    if at >= 0:
        atomic_rewrite(path, content[:at] + content[at + len(line) :])


def check_list(path: Path) -> None:
    """Raise InputError where a list is there and cannot be read."""
    if path.exists():
        read_terms(path)


def _content(path: Path) -> bytes:
    return b"".join(raw for _, raw in raw_lines(path)) if path.exists() else b""
