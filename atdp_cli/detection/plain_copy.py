"""The normalised copy of a text that the pipeline and the recognisers read, with the place of each of its characters.

In the copy characters that look alike are one, invisible ones are left out, decomposed letters are composed, codes of
HTML, URLs, JSON and terminals are what they stand for, and the groups of a number stand a space apart.
"""

import bisect
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.keyed import named_by
from atdp_cli.detection.identifiers.recogniser import listed

Change = tuple[int, int, str]
"""(start, end, what stands there in the copy)."""


class PlainCopy(NamedTuple):
    """A normalised text.

    Attributes:
        text: The copy.
        starts: Where the original of each character begins.
        ends: Where it ends, exclusive.
        codes: Places of the original that are markup: spans end there. Sorted and disjoint.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    codes: Sequence[Range] = ()

    @property
    def changed(self) -> bool:
        """Whether it differs from the text."""
        return not isinstance(self.starts, range)

    def place(self, start: int, end: int) -> Range:
        """The original of the characters from `start` to `end` > `start`."""
        return self.starts[start], self.ends[end - 1]

    def places(self, start: int, end: int) -> Iterator[Range]:
        """Its parts between codes."""
        begin, stop = self.place(start, end)
        for code in self.codes[bisect.bisect_right(self.codes, begin, key=lambda code: code[1]) :]:
            if code[0] >= stop:
                break
            if begin < code[0]:
                yield begin, code[0]
            begin = code[1]
        if begin < stop:
            yield begin, stop


def plain_copy(text: str) -> PlainCopy:
    """Normalise a text."""
    copy = PlainCopy(text, range(len(text)), range(1, len(text) + 1))
    if any(mark in text for mark in "%&<\\\x1b"):
        copy = _changed(copy, _code_changes, codes=True)
    if any(mark in text for mark in ("[", "(", "{", "hxxp")):
        copy = _changed(copy, _defanged_changes)
    if not copy.text.isascii():
        copy = _changed(copy, _character_changes)
    return _changed(copy, _number_changes) if _BROKEN.search(copy.text) else copy


def _changed(copy: PlainCopy, changes: Callable[[str], Iterator[Change]], *, codes: bool = False) -> PlainCopy:
    parts, starts, ends, places = list[str](), list[int](), list[int](), list[Range]()
    done = 0
    for start, end, new in changes(copy.text):
        parts += (copy.text[done:start], new)
        begin, stop = copy.place(start, end)
        starts += (*copy.starts[done:start], *[begin] * len(new))
        ends += (*copy.ends[done:start], *[stop] * len(new))
        # What stands for a letter is part of its word.
        if codes and not new.isalnum():
            places.append((begin, stop))
        done = end
    if not done:
        return copy
    parts.append(copy.text[done:])
    return PlainCopy("".join(parts), [*starts, *copy.starts[done:]], [*ends, *copy.ends[done:]], places or copy.codes)


_CODE = re.compile(
    r"""(?P<colour> (?:\x1b|\\(?:x1b|e|033|u001b))\[[0-9;]{0,20}[A-Za-z] )
    | (?P<entity> &(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8}\d?); )
    | (?P<percent> %(?:2[0-9A-Fa-f]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Eb-e]) | %[CDcd][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]
        | %[Ee][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){2} | %[Ff][0-7](?:%[89ABab][0-9A-Fa-f]){3} )
    | (?P<escape> \\[nrt](?![a-z]) | \\u(?![dD][89A-Fa-f])[0-9A-Fa-f]{4} | \\["/] )
    | (?P<tag> <(?P<end>/?)(?P<name>[A-Za-z][\w:.-]{0,30})\s?/?> )
    | (?P<begin> <[A-Za-z][\w:.-]{0,30}(?=\s{1,4}[\w:.-]{1,40}\s?=) )
    | (?P<close> (?<=["'])\s?/?> )""",
    re.VERBOSE,
)

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/"}


def _code_changes(text: str) -> Iterator[Change]:
    for match in _CODE.finditer(text):
        start, end = match.span()
        if match["tag"]:
            yield from _tag_changes(text, match)
        elif match["colour"]:
            yield start, end, _gap(text, start, end)
        elif match["entity"]:
            if (character := html.unescape(match[0])) != match[0]:
                yield start, end, character
        elif match["percent"]:
            yield start, end, unquote(match[0], errors="replace")
        elif match["escape"]:
            yield start, end, chr(int(match[0][2:], 16)) if match[0][1] == "u" else _ESCAPES[match[0][1]]
        else:
            yield start, end, "\n"


def _tag_changes(text: str, match: re.Match[str]) -> Iterator[Change]:
    """Tags of HTML and closing tags are left out; any other is the key of what it holds, unless it is a placeholder."""
    (start, end), name = match.span(), match["name"]
    if name.casefold() in listed("elements in words"):
        yield start, end, _gap(text, start, end)
    elif name.casefold() in listed("elements") or match["end"]:
        yield start, end, "\n"
    elif not name.isupper() or named_by(name)[0] is not None:
        yield start, start + 1, "\n"
        yield end - 1, end, ": "


def _gap(text: str, start: int, end: int) -> str:
    """What stands for a code that is seen only by its effect: words beside it stay apart."""
    return " " if text[start - 1 : start].isalnum() and text[end : end + 1].isalnum() else ""


_DEFANGED = re.compile(
    r"(?<=[\w\])}])[\[({](?P<sign>\.|dot|@|at|:)[\])}](?=[\w\[({])|(?<!\w)hxxp(?=s?(?:\[?:|://))", re.IGNORECASE
)


def _defanged_changes(text: str) -> Iterator[Change]:
    """Addresses that are written so that nobody clicks on them: hxxp://example[.]com."""
    for match in _DEFANGED.finditer(text):
        sign = match["sign"]
        yield *match.span(), "http" if sign is None else {"dot": ".", "at": "@"}.get(sign.casefold(), sign)


_CHARACTER = re.compile(
    "[^\\W_][\u0300-\u036f]{1,8}|[\u00a0\u00ad\u034f\u061c\u1680\u180e\u2000-\u2012\u2028-\u202f\u205f-\u2064"
    "\u2066-\u206f\u2212\u3000\ufe58\ufe63\ufeff\uff01-\uff5e]"
)


def _character_changes(text: str) -> Iterator[Change]:
    for match in _CHARACTER.finditer(text):
        if (plain := _plain(match[0])) != match[0]:
            yield *match.span(), plain


def _plain(character: str) -> str:
    if len(character) > 1:
        return unicodedata.normalize("NFC", character)
    category = unicodedata.category(character)
    if category in ("Cf", "Mn"):
        return ""
    if category in ("Zl", "Zp"):
        return "\n"
    return "-" if category == "Pd" or character == "\u2212" else unicodedata.normalize("NFKC", character)


_BROKEN = re.compile(r"[\d)](?:-?[ ]*+[\t\r\n]|  |-[ ]|[ ]-)[ \t\r\n-]*+[\dA-Z(]")

_GAP = r"[\s-]{1,4}"

_NUMBER = re.compile(
    rf"""(?<![\w.,/-])
    (?: \d{{3}}{_GAP}\d{{2}}{_GAP}\d{{4}}
      | (?:\+?1{_GAP})? \(?\d{{3}}\)?{_GAP}?\d{{3}}{_GAP}\d{{4}}
      | \+\d{{1,3}}(?:{_GAP}\(?\d{{1,5}}\)?){{2,5}}+ | \(?0\d{{1,4}}\)?(?:{_GAP}\d{{2,4}}){{2,4}}+
      | \d{{4}}{_GAP}(?:\d{{4}}{_GAP}\d{{4}}{_GAP}\d{{1,7}} | \d{{6}}{_GAP}\d{{4,5}})
      | [A-Z]{{2}}\d{{2}}(?:{_GAP}[A-Z0-9]{{4}}){{2,7}}+(?:{_GAP}[A-Z0-9]{{1,3}}(?!\w))?
    ) (?![\w-])""",
    re.VERBOSE,
)
"""Numbers that are written in groups: social security, telephones, cards, accounts."""

_GROUPS = re.compile(r"(?<=[\w)])[\s-]{2,4}(?=[\w(])|(?<=[\w)])[\t\r\n](?=[\w(])")


def _number_changes(text: str) -> Iterator[Change]:
    for number in _NUMBER.finditer(text):
        for gap in _GROUPS.finditer(text, *number.span()):
            yield *gap.span(), "-" if "-" in gap[0] else " "
