"""The layout of plain text as lines, paragraphs or one document, and the marks that begin a message."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.corpus.segments import Segment, Selection
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.corpus_file import OnError, display_name, read_lines, without_mark
from atdp_cli.files.regexes import Expression, compiled

_JSON = re.compile(r'\A\ufeff?\s*(?:\[\s*$|(?:\[\s*)?\{\s*(?:"|$))')

EXAMPLE = "(?P<assistant>SYS|ACT): ?|(?P<user>USR): ?"


@dataclass(frozen=True, slots=True)
class Speakers:
    """Finds the label at a line's beginning; the named group that takes part in it is the role."""

    expression: Expression

    def at(self, line: str) -> tuple[str, int] | None:
        """The role and the length of the label that a line begins with; None where it goes on with a message.

        Raises:
            InputError: The expression takes too long.
        """
        match = next(self.expression.finditer(line), None)
        if match is None or match.lastgroup is None:
            return None
        return match.lastgroup, match.end()


def parse_speakers(pattern: str) -> Speakers:
    """A user's expression such as `EXAMPLE`.

    Raises:
        UsageError: It is no expression, or has no named group.
    """
    try:
        names = re.compile(pattern).groupindex
        expression = compiled(rf"\A(?:{pattern})", "The expression of run.turns")
    except (re.error, RecursionError, OverflowError):
        names, expression = None, None
    if not names or expression is None:
        problem = "is no regular expression" if expression is None else "names no role"
        raise UsageError(f"run.turns {problem}.", f"Name a role by a group, as in '{EXAMPLE}'.")
    return Speakers(expression)


def text_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """Read the segments of a plain text, as `record.read_segments` does."""
    unit = selection.unit
    if unit == "document":
        yield from _document(path, on_error)
        return
    speakers = None if selection.turns is None else parse_speakers(selection.turns)
    before, record, id_, within = "", -1, "", False
    turn, role = -1, ""
    for number, line, ending in _lines(path, on_error):
        mark, text = without_mark(number, line)
        if not text.strip():
            before += line + ending
            within = False
            continue
        label = 0
        if speakers is not None:
            said = speakers.at(text)
            if said is not None:
                (role, label), turn = said, turn + 1 if within else 0
            elif not within:
                on_error(
                    InputError(
                        f"{display_name(path)}: line {number} begins a paragraph, and no speaker that run.turns knows.",
                        "Let each conversation begin with a speaker, or widen the expression.",
                    )
                )
                continue
        if unit == "line" or not within:
            record, id_, within = record + 1, str(number), True
        yield Segment(before + mark + text[:label], text[label:], record, id_, turn=turn, role=role)
        before = ending
    yield Segment(before, None)


def _lines(path: Path, on_error: OnError) -> Iterator[tuple[int, str, str]]:
    """`read_lines` of what is plain text.

    Raises:
        InputError: It begins as JSON does. Edits of its lines would cut through escapes and quotes.
    """
    blank = True
    for number, line, ending in read_lines(path, on_error):
        if blank and _JSON.match(line):
            raise InputError(
                f"{display_name(path)} holds JSON, and is read as plain text.",
                "Name it with .jsonl, one object a line. To read lines of JSON as text: jq -cR '{text: .}'.",
            )
        blank = blank and not line.removeprefix("\ufeff").strip()
        yield number, line, ending


def _document(path: Path, on_error: OnError) -> Iterator[Segment]:
    pieces: list[str] = []
    mark = ending = ""
    for number, line, line_ending in _lines(path, on_error):
        here, text = without_mark(number, line)
        mark = mark or here
        pieces += (ending, text)
        ending = line_ending
    text = "".join(pieces)
    if text.strip():
        yield Segment(mark, text, 0, "1")
    yield Segment(ending, None)
