"""The structural text of a record: speakers, field names, headings, list markers, usual abbreviations.

The rules are fixed and read nothing but the text itself, with lists that ship with the package.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.word_lists import all_names, common_words, given_names, structure_words, surnames

_PLAIN = ("fields", "links", "roles")

_WORD = r"[^\W\d_]{1,20}(?:['’-][^\W\d_]{1,20})?"

_NUMBER = r"[ _#-]{0,2}\d{1,3}"

_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,3})?)?(?:\ ?[AaPp]\.?[Mm]\.?(?!\w))?"

_START = r"^[ \t]{0,16}(?:>[ \t])?"

_SPEAKER = re.compile(
    rf"""{_START} [*_]{{0,2}} (?:(?P<time>[\[(<]?{_TIME}[\])>]?)[ \t]{{0,2}}(?:[|,–—-][ \t]{{0,2}})?)?
    [*_<\[(]{{0,2}} (?P<label>(?P<words>{_WORD}(?:[ _-]{_WORD}){{0,2}})(?P<number>{_NUMBER})?)
    [*_>\])]{{0,2}} [ \t]? [:>] (?!//) (?(number)(?!\d))""",
    re.VERBOSE | re.MULTILINE,
)

_LATER_SPEAKER = re.compile(
    rf"(?<=[ \t])(?P<label>(?P<words>{_WORD})(?P<number>{_NUMBER})?)[ \t]?:(?!//)(?(number)(?!\d))"
)

_BRACKETED_TIME = re.compile(rf"{_START}(?P<time>[\[(<]{_TIME}[\])>])", re.MULTILINE)

_MONTH = r"(?i:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])"

_MARKER = re.compile(
    rf"{_START}(?P<marker>[*•+–—-]|\#{{1,6}}|\(?(?:\d{{1,2}}|[A-Za-z])\)|\d{{1,2}}\.(?![ \t]{{1,4}}{_MONTH}))"
    r"(?=[ \t]{1,4}[^\W\d])",
    re.MULTILINE,
)

_FIELD = re.compile(
    rf"""(?: {_START} (?:(?:[*•+–—-]|\(?\d{{1,2}}[.)])[ \t]{{1,4}})? [*_"'{{<\[(]{{0,3}}
        | (?<=[,;|.!?{{(\[]) [ \t]? ["']? | (?<=[,;|][ ]) )
    (?P<field> {_WORD} (?:[ _/]{_WORD}){{0,3}} ) ["'*_]{{0,2}} (?:[ ]?\#)? (?: [ \t]?[:=](?!//) | [ ][–—-](?=[ ]) )""",
    re.VERBOSE | re.MULTILINE,
)

_HEADING = re.compile(
    r"""^[ \t]{0,16}(?P<lead>[\#=*_~-]{0,6})[ \t]{0,4}
    (?P<heading>[A-Z]{2,20}(?:(?:[ ]|[ ]?[&/,-][ ]?)[A-Z]{2,20}){0,7})
    [ \t]{0,4}(?: (?P<colon>:) | [=*_~-]{0,6}[ \t]{0,4}$ )""",
    re.VERBOSE | re.MULTILINE,
)

_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")

_EDGE = re.compile(r"(?<![\w/.@-])(?:N/A|[A-Z]{2,6}s?)")

_GOES_ON = re.compile(r"\w|[.@/-]\w")

_MAX_KEYWORD = 7

_BETWEEN = " \t\r\n#:=,;./()\"'-"


def structure(text: str, speaker_labels: Sequence[str] = ()) -> list[Range]:
    """Where labels of speakers, times before them, names of fields, headings and list markers stand.

    Args:
        text: A record's text.
        speaker_labels: Words that are labels before `:` or `>` at the start of a line, whatever else they mean, and
            before `:` in a line that begins with a label.

    Returns:
        Places, sorted and disjoint. Speakers' names are not among them.
    """
    places = {*_headings(text), *_fields(text), *_speakers(text, tuple(speaker_labels))}
    for pattern, group in ((_BRACKETED_TIME, "time"), (_MARKER, "marker")):
        places.update(match.span(group) for match in pattern.finditer(text))
    return joined(places)


def joined(ranges: set[Range]) -> list[Range]:
    """The same characters in as few places as can be, sorted."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def keyword_ends(text: str, start: int, end: int) -> Range:
    """A place without the keywords ("SSN") at its ends; empty where it has nothing else.

    A keyword that is also somebody's name stays beside another word in capitals.
    """
    while (match := _EDGE.match(text, start, end)) and _is_keyword(text, match, start, end):
        start = match.end()
        while start < end and text[start] in _BETWEEN:
            start += 1
    while start < end and (text[end - 1].isupper() or text[end - 1] == "s"):
        window = _EDGE.finditer(text, max(start, end - _MAX_KEYWORD), end)
        match = next((keyword for keyword in window if keyword.end() == end), None)
        if match is None or not _is_keyword(text, match, start, end):
            break
        end = match.start()
        while start < end and text[end - 1] in _BETWEEN:
            end -= 1
    return start, end


def _is_keyword(text: str, match: re.Match[str], start: int, end: int) -> bool:
    keywords = structure_words("keywords")
    word = match[0]
    if word not in keywords and word.removesuffix("s") not in keywords:
        return False
    if _GOES_ON.match(text, match.end()):  # API-42, PIN2
        return False
    # After a comma two letters are a state: Boise, ID.
    if len(word) == 2 and text[max(0, match.start() - 4) : match.start()].rstrip().endswith(","):
        return False
    if word.casefold() not in given_names() and word.casefold() not in surnames():
        return True
    return not any(other.isupper() and other not in keywords for other in _LETTERS.findall(text, start, end))


def _speakers(text: str, stated: tuple[str, ...]) -> Iterator[Range]:
    """Labels at the start of a line and the times before them; and those further on in a line that begins with one."""
    first = set(_stated(text, stated))
    for match in _SPEAKER.finditer(text):
        if match["time"]:
            yield match.span("time")
        if _is_role(match["words"]) or (match["number"] is None and _is_label(match["words"])):
            first.add(match.span("label"))
    for start, end in first:
        yield start, end
        yield from _later_speakers(text, (start, end), stated)


def _later_speakers(text: str, first: Range, stated: tuple[str, ...]) -> Iterator[Range]:
    """Whole conversations stand in one line: roles, the line's first label again, and stated labels."""
    known, line_end = {text[slice(*first)], *stated}, text.find("\n", first[1])
    for match in _LATER_SPEAKER.finditer(text, first[1], len(text) if line_end < 0 else line_end):
        if match["label"] in known or _is_role(match["words"]):
            yield match.span("label")


def _is_role(label: str) -> bool:
    words = re.split("[ _-]", label.casefold())
    roles = structure_words("roles")
    return any(word in roles for word in words) and all(
        word in roles or word in structure_words("beside roles") for word in words
    )


def _is_label(word: str) -> bool:
    """Whether a word in capitals is a label, which it is where nobody has that name: USR, but not MARIA."""
    return (
        re.fullmatch("[A-Z]{2,10}", word) is not None
        and word.casefold() not in given_names()
        and word.casefold() not in surnames()
    )


def _fields(text: str) -> Iterator[Range]:
    for match in _FIELD.finditer(text):
        words = re.split("[ _/]", match["field"].casefold())
        # What stands before the words that make it a field must say nothing: "Customer name", not "Maria name".
        if (words[-1] in structure_words("fields") or words[-1].upper() in structure_words("keywords")) and all(
            map(_is_plain, words[:-1])
        ):
            yield match.span("field")


def _headings(text: str) -> Iterator[Range]:
    several = "\n" in text.strip()
    for match in _HEADING.finditer(text):
        words = [word.casefold() for word in _LETTERS.findall(match["heading"])]
        marked = match["colon"] or match["lead"] or several
        if marked and all(_is_plain(word) for word in words):
            yield match.span("heading")


def _is_plain(word: str) -> bool:
    """Whether a word names nothing but kinds of things, and nobody."""
    if word.upper() in structure_words("keywords") or any(word in structure_words(kind) for kind in _PLAIN):
        return True
    return word in common_words() and word not in all_names()


def _stated(text: str, labels: tuple[str, ...]) -> Iterator[Range]:
    if labels:
        for match in _stated_pattern(labels).finditer(text):
            yield match.span("label")


@cache
def _stated_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    return re.compile(rf"{_START}(?P<label>{words})(?=[ \t]?[:>])", re.MULTILINE)
