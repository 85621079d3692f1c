"""Term lists: terms that people allow or deny, and how they change the spans of a text."""

import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from atdp_cli.corpus.spans import Span, Tier, outside
from atdp_cli.errors import InputError
from atdp_cli.files.atomic_write import atomic_rewrite
from atdp_cli.files.corpus_file import LONE_SURROGATE, check_regular, display_name, raw_lines, read_lines, without_mark
from atdp_cli.files.regexes import Expression, Pattern, compiled


def read_terms(path: Path) -> tuple[Pattern, ...]:
    """The terms of a list, one a line.

    A line is a literal term (any case, as whole words, any white space between its words) or a regular
    expression between slashes, taken as it is. Blank lines and lines that begin with `#` are skipped.

    Raises:
        InputError: A missing file, a line that is not UTF-8, or a bad regular expression.
    """
    check_regular(path)
    patterns: list[Pattern] = []
    for number, line, _ in read_lines(path):
        term = without_mark(number, line)[1].strip()
        if not term or term.startswith("#"):
            continue
        if len(term) > 2 and term.startswith("/") and term.endswith("/"):
            patterns.append(_regular_expression(term[1:-1], f"{display_name(path)}: line {number}"))
        else:
            patterns.append(literal(term))
    return tuple(patterns)


def literal(term: str) -> re.Pattern[str]:
    """A pattern for `term` as whole words, in any case."""
    words = r"\s+".join(re.escape(word) for word in term.split())
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def _regular_expression(source: str, where: str) -> Expression:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what a later version of Python will read in another way
            return compiled(source, where)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        detail = error.msg if isinstance(error, re.error) else str(error) if isinstance(error, Warning) else "too large"
        raise InputError(
            f"{where} is not a valid regular expression ({detail}).",
            "Correct it, or drop the slashes to match the line as a literal term.",
        ) from error


def denied(text: str, deny: Sequence[Pattern]) -> list[Span]:
    """A DENY span, sensitive at every tier, wherever a pattern matches."""
    return [
        Span(start, end, "DENY", "deny", Tier.LOW_ENTITY)
        for pattern in deny
        for start, end in (match.span() for match in pattern.finditer(text))
        if end > start
    ]


def allowed(text: str, spans: Iterable[Span], allow: Sequence[Pattern]) -> list[Span]:
    """The spans without the characters that a pattern matches, white space at their ends trimmed.

    A span that is matched in its middle leaves two; one that is matched whole leaves none.
    """
    holes = _disjoint(match.span() for pattern in allow for match in pattern.finditer(text))
    return [piece for span in spans for piece in _without(text, span, holes)] if holes else list(spans)


def _disjoint(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return joined


def _without(text: str, span: Span, holes: Sequence[tuple[int, int]]) -> Iterable[Span]:
    pieces = outside(span, holes)
    if len(pieces) == 1:
        yield span
        return
    for start, end in pieces:
        rest = text[start:end] if start < end else ""
        if trimmed := rest.strip():
            at = start + len(rest) - len(rest.lstrip())
            yield Span(at, at + len(trimmed), span.label, span.source, span.tier)


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
