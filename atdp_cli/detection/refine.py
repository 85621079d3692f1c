"""Post-processing of spans: drops structural text and common words, prefers identifiers."""

import bisect
import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from atdp_cli.corpus.spans import CATCH_ALL, Range, Span, Tier, by_place, outside
from atdp_cli.detection.structure import joined, keyword_ends, structure
from atdp_cli.detection.word_lists import (
    all_names,
    common_words,
    commonest_words,
    function_words,
    given_names,
    structure_words,
    surnames,
)

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_TIMES = frozenset({"DATE", "TIME"})

_COUNT = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|few|several|couple(?: of)?|half an?)"

_DURATION = re.compile(
    r"(?:(?:up to|at least|at most|more than|less than|no|only|just|about|around|over|under|almost|nearly|within|in|for"
    r"|the|these|those|last|past|next|first|every|another|other|a)\s{1,3}){0,4}"
    rf"{_COUNT}(?:\s?(?:-|–|to|or)\s?{_COUNT})?[\s-]{{0,3}}"
    r"(?:(?:business|working|more|full|whole|late)\s{1,3}){0,2}"
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|weekends?|wks?|months?)"
    r"(?:\s{1,3}(?:ago|later|now|before|earlier|more|straight|in a row|already|old))?"
)
"""How long something takes, or how long ago it was. Years are left: they may be somebody's age."""

_SENTENCE_ENDS = "!?:;…\n>•*"

_BESIDE = "\"'“”‘’()[]- \t\r"
"""What may stand between the end of a sentence and the first word of the next."""

_GUESSES = frozenset({"PROPN", "PERSON", "PER"})
"""A person's name is in the lists of names, or its words are in no list; the tagger's names are mere guesses."""

_PEOPLE = frozenset({"PERSON", "PER"})

_LISTED_ITEM = re.compile(r"\b[^\W\d_]{3,}\d{1,2}")
"""A word with a number, as in "question2"."""

_TITLES = frozenset({"Dr", "Mr", "Ms", "St", "Mrs", "Rev", "Gen", "Col"})
"""After which, as after an initial, a full stop ends no sentence."""

_DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}|^a?(?:[hjk]+[aeiou]+){3,}[hjk]?$")
"""Three times the same letter, or laughter."""

_CAPITALISED = re.compile(r"[^\W\d_][^\W\d_A-Z]+")

_NEXT = re.compile(r"[ -]([^\W\d_]+)")

_BEFORE = 16
"""How many characters before a word are looked at; quotes and spaces before the first word of a sentence are fewer."""


def is_public(text: str, start: int, end: int, label: str) -> bool:
    """Whether what was taken for a name is public: common words that are nobody's name, written as common words are.

    No digit and no number word is among them, unless they say how long something takes ("14 days"). They are

    - all in lower case; of a DATE or TIME they may be somebody's name too, if they are no month or season; or
    - one of the 4,000 commonest words, all in capitals or at the start of a sentence, before no capitalised word; or
    - of a PERSON, or of what the tagger alone took for a name, written in any way, after no title or initial; or
    - words that name fields of forms ("Email Address"), however they are written; or
    - a brand called after somebody, alone or before what it makes, or a grade of members ("Calvin Klein Jeans"); or
    - hashtags that only the tagger took for a name, without anybody's name in them; or
    - interjections and abbreviations of chats ("Lmao", "Congrats"), with letters drawn out ("NOOOO") or laughing.

    "New Balance" and "Square" in the middle of a sentence stay.

    Args:
        text: A record's text.
        start: Where the name begins.
        end: Where it ends, exclusive.
        label: What spaCy calls it.
    """
    place = text[start:end]
    words = _WORD.findall(place)
    if label in _TIMES:
        return _DURATION.fullmatch(place.casefold()) is not None or _says_no_date(place, words)
    if _LISTED_ITEM.fullmatch(place) and all(map(_is_common, words)):
        return True
    if any(map(str.isdigit, place)):
        return False
    return (
        all(map(_is_field, words))
        or _is_brand(words, 2 if label in _PEOPLE or _is_addressed(text, start) else 1)
        or all(map(_is_interjection, words))
        or (label == "PROPN" and text[max(0, start - 1) : start] == "#" and not any(map(_has_name, words)))
        or (all(map(_is_common, words)) and _is_written_plainly(text, start, end, label, words))
    )


def _says_no_date(place: str, words: list[str]) -> bool:
    if any(map(str.isdigit, place)) or any(word.istitle() and word.casefold() not in _WEEKDAYS for word in words[1:]):
        return False
    return all(map(_says_no_day, words))


def _is_written_plainly(text: str, start: int, end: int, label: str, words: list[str]) -> bool:
    if not any(word[0].isupper() for word in words):
        return True
    word = words[0]
    if label in _GUESSES and not _is_addressed(text, start):
        return True
    if len(words) > 1 or not any(_folded(word) in listed for listed in (commonest_words(), function_words())):
        return False
    return (word.isupper() or _begins_sentence(text, start)) and not _goes_on(text, end)


def _begins_sentence(text: str, start: int) -> bool:
    """Whether a capital says nothing here: at the start of a text, after a sentence, a colon, or on a new line."""
    before = text[max(0, start - _BEFORE) : start].rstrip(_BESIDE)
    if not before:
        return start <= _BEFORE
    if before[-1] in _SENTENCE_ENDS:
        return True
    if before[-1] != ".":
        return False
    return not _is_abbreviated(before[:-1])


def _is_addressed(text: str, start: int) -> bool:
    """Whether a title or an initial stands before."""
    before = text[max(0, start - _BEFORE) : start].rstrip(". ")
    return _is_abbreviated(before)


def _is_abbreviated(before: str) -> bool:
    """Whether a text ends with a title or an initial."""
    last = re.split(r"[^\w]", before)[-1]
    return last in _TITLES or (len(last) == 1 and last.isupper())


def _goes_on(text: str, end: int) -> bool:
    """Whether a capitalised word follows that may be somebody's name."""
    match = _NEXT.match(text, end)
    return match is not None and match[1][0].isupper() and not match[1].isupper() and not _is_common(match[1])


_WEEKDAYS = frozenset(day.casefold() for day in (*calendar.day_name, *calendar.day_abbr))
"""Alone they name no day."""


def _says_no_day(word: str) -> bool:
    folded = word.casefold()
    if folded in _WEEKDAYS:
        return True
    if any(folded in structure_words(kind) for kind in ("numbers", "calendar")):
        return False
    return folded in function_words() or folded in common_words()


def _is_field(word: str) -> bool:
    folded = word.casefold()
    if folded in given_names() or folded in surnames():
        return False
    return folded in structure_words("fields") or word in structure_words("keywords")


def _is_brand(words: Sequence[str], fewest: int) -> bool:
    """Whether words begin with a brand of so many words or more, and go on with common ones."""
    folded = list(map(_folded, words))
    return any(
        "_".join(folded[:size]) in structure_words("brands") and all(map(_is_common, words[size:]))
        for size in range(fewest, min(len(words), 2) + 1)
    )


def _has_name(hashtag: str) -> bool:
    """Whether a part of a hashtag such as "JohnSmith" is somebody's name."""
    parts = [hashtag, *_CAPITALISED.findall(hashtag)]
    return any(part.casefold() in listed for part in parts for listed in (given_names(), surnames()))


def _is_interjection(word: str) -> bool:
    folded = word.casefold()
    if folded in given_names() or folded in surnames():
        return False
    return folded in structure_words("interjections") or _DRAWN_OUT.search(folded) is not None


def _is_common(word: str) -> bool:
    folded = _folded(word)
    if folded in function_words():
        return folded not in ("may", "will")
    return folded in common_words() and folded not in all_names() and folded not in structure_words("numbers")


def _folded(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s")


_GUESSED = frozenset({"ner", "pos", "dep"})

_SAME_KIND = {"DATE": ("DATE",), "ADDRESS": ("LOC", "GPE", "FAC")}

_NOT_CUT_BY_NUMBERS = frozenset({"DATE", "PERSON", "PER"})

_LISTED = frozenset({"PERSON", "GPE", "ORG"})
"""What lists of names and a word before it find: an entity around it stays whole."""

_EDGE = " \t\r\n\f\v.,;:!?#=/|<>()[]{}\"'“”‘’*_–—-"


def refined(text: str, spans: Sequence[Span], speaker_labels: Sequence[str] = ()) -> list[Span]:
    """Refine the spans of a text by rules that read only the text and the package's word lists. The result is sorted.

    Structure (`structure`, `keyword_ends`) is not flagged at any tier. Where a recogniser's identifier lies, an entity
    ends. A name that is common words alone (`is_public`) is none.

    Args:
        text: A record's text.
        spans: Of spaCy and the recognisers; spans of other sources stay as they are.
        speaker_labels: See `structure`.
    """
    holes = structure(text, speaker_labels)
    identifiers = [span for span in spans if span.source == "pattern"]
    # By label, since an identifier of the same kind does not cut an entity.
    taken = {label: _cutting(identifiers, label) for label in {span.label for span in spans if _is_name(span)}}
    refined_spans: set[Span] = set()
    for span in spans:
        if span.source not in _GUESSED:
            if span.source != "pattern" or not (_within(span, holes) or _is_good(text, span)):
                refined_spans.add(span)
        elif _is_name(span):
            pieces = (
                rest for piece in _without_structure(text, span, holes) for rest in _cut(text, piece, taken[span.label])
            )
            refined_spans.update(piece for piece in pieces if _says_something(text, piece, span))
        else:
            refined_spans.update(_without_structure(text, span, holes))
    return sorted(refined_spans, key=by_place)


def _is_name(span: Span) -> bool:
    """Whether spaCy took it for a name: an entity, or capitalised proper nouns without a label."""
    return span.source == "ner" or (span.source == "pos" and span.tier is Tier.LOW_ENTITY)


def _is_good(text: str, span: Span) -> bool:
    """Whether a listed name is a brand's: "Tommy Hilfiger"."""
    return span.label == "PERSON" and _is_brand(_WORD.findall(text[span.start : span.end]), 2)


def _without_structure(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    for piece in _cut(text, span, holes):
        start, end = keyword_ends(text, piece.start, piece.end)
        if start < end:
            yield piece if (start, end) == (piece.start, piece.end) else replace(piece, start=start, end=end)


def _says_something(text: str, piece: Span, whole: Span) -> bool:
    """Whether what is left of a name is one; function words are left of "from 10.0.0.1" where the address is taken."""
    if is_public(text, piece.start, piece.end, piece.label):
        return False
    left = text[piece.start : piece.end].casefold().split()
    return (piece.start, piece.end) == (whole.start, whole.end) or not function_words().issuperset(left)


def _cutting(identifiers: Sequence[Span], label: str) -> list[Range]:
    """Where recognisers' spans lie that end an entity of this label."""
    return joined({(span.start, span.end) for span in identifiers if _cuts(span.label, label)})


def _cuts(identifier: str, entity: str) -> bool:
    if identifier in _LISTED:
        return False
    if identifier in CATCH_ALL:
        return entity not in _NOT_CUT_BY_NUMBERS
    return entity not in _SAME_KIND.get(identifier, ())


def _within(span: Span, holes: Sequence[Range]) -> bool:
    first = bisect.bisect_right(holes, span.start, key=lambda hole: hole[1])
    return first < len(holes) and holes[first][0] <= span.start and span.end <= holes[first][1]


def _cut(text: str, span: Span, holes: Sequence[Range]) -> Iterator[Span]:
    """The parts of a span outside the holes that hold a letter or digit; punctuation beside a hole goes with it."""
    pieces = outside(span, holes)
    if len(pieces) == 1:
        yield span
        return
    for start, end in pieces:
        rest = text[start:end] if start < end else ""
        if any(map(str.isalnum, rest)):
            begun = start + len(rest) - len(rest.lstrip(_EDGE))
            yield replace(span, start=begun, end=begun + len(rest.strip(_EDGE)))
