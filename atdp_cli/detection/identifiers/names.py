"""People by their context and by lists of names: in lower case, in chats, without a sentence around them."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import listed, pattern, recogniser
from atdp_cli.detection.word_lists import (
    common_words,
    function_words,
    given_names,
    place_names,
    structure_words,
    surnames,
)


def _could_be_a_name(match: re.Match[str]) -> bool:
    return match["value"].split()[0].lower() not in function_words()


_NAME = r"[^\W\d_][\w'’-]{1,24}"

name_after_title = pattern(
    "PERSON",
    rf"(?<![\w.]) (?i:mr|mrs|ms|dr|prof)\.? [ ] (?P<value> (?:[A-Z]\.[ ]?){{0,3}} {_NAME} )",
    check=_could_be_a_name,
)

name_introduced = pattern(
    "PERSON",
    r"(?<!\w) (?i: (?:my|his|her|their) [ ] (?:(?:first|last|full|maiden|middle|sur)[ ]?)? name (?:[ ]is|['’]s) )"
    rf"[ ] (?P<value> {_NAME} (?:[ ][A-Z][\w'’-]{{1,24}}){{0,2}} ) (?!\w)",
    check=_could_be_a_name,
)

_WORD = re.compile(r"[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*", re.IGNORECASE)

MAX_FOLLOWING = 3
"""Words that may belong to a name after its first, particles left out."""

_BETWEEN = (" ", "  ", "-")
"""What stands between two words of a name."""

_AFTER_INITIAL = (" ", ". ")

Word = tuple[int, int, str, str]
"""(start, end, word, casefolded)."""


@cache
def _no_names() -> frozenset[str]:
    """Words that alone are nobody's name, in lower case at least: common ones, months, days, roles and keywords."""
    keywords = frozenset(word.casefold() for word in structure_words("keywords"))
    return common_words() | listed("chat") | listed("calendar") | structure_words("roles") | keywords


@cache
def _clear_given() -> frozenset[str]:
    """Given names that are neither common words nor places."""
    return frozenset(name for name in given_names() if len(name) > 2) - _no_names() - place_names()


@cache
def _clear_surnames() -> frozenset[str]:
    return frozenset(name for name in surnames() if len(name) > 2) - _no_names()


@recogniser("PERSON")
def listed_name(text: str) -> Iterator[Range]:
    """Names of public lists, in any case.

    A given name that is no common word, with the names or unknown words behind it ("jorge ramirez", "Ryan P Costa");
    a given name that is one ("mark"), or an unknown word, before a surname that is none; and such a surname alone
    where it is in lower case. Elsewhere the pipeline sees it.
    """
    given, family, words = _clear_given(), _clear_surnames(), _words(text)
    position = 0
    while position < len(words):
        start, end, word, folded = words[position]
        if folded in given:
            last = _last_of_name(text, words, position)
            yield start, words[last][1]
            position = last + 1
            continue
        following = words[position + 1] if position + 1 < len(words) else None
        if (
            following is not None
            and following[3] in family
            and following[2].islower() == word.islower()
            and _before_surname(folded)
            and _gap(text, words, position + 1) in _BETWEEN
        ):
            yield start, following[1]
            position += 2
            continue
        if folded in family and len(folded) > 3 and word.islower():
            yield start, end
        position += 1


# Particles of several words, or that mean nothing else, tell a name whose first word is in no list.
name_with_particle = pattern(
    "PERSON",
    r"""(?i)(?<![\w@./-]) (?P<first>[^\W\d_]{3,24}) [ ]
    (?:van[ ](?:der|den|de|het|'t)|von(?:[ ](?:der|dem|und[ ]zu))?|de[ ](?:la|las|los)|bin|ibn|bint|dos|della|af)
    [ ] (?P<last>[^\W\d_]{3,24}) (?!\w)""",
    check=lambda match: _before_surname(match["first"].casefold()) and _is_family(match["last"].casefold()),
)


@recogniser("ORG")
def firm_of_surnames(text: str) -> Iterator[Range]:
    """`hubbard, fox and gillespie`: three listed surnames, whatever else the words mean."""
    words, family = _words(text), surnames()
    for position in range(len(words) - 3):
        first, second, joint, third = words[position : position + 4]
        if (
            joint[3] == "and"
            and {first[3], second[3], third[3]} <= family
            and text[first[1] : second[0]] in (", ", ",")
            and text[second[1] : joint[0]] in (" ", ", ")
            and text[joint[1] : third[0]] == " "
        ):
            yield first[0], third[1]


@recogniser("GPE")
def listed_place(text: str) -> Iterator[Range]:
    """Countries, capitals and large cities of a public list, in any case.

    One that is a common word, such as "turkey", is none in lower case.
    """
    words, position = _words(text), 0
    while position < len(words):
        length = _words_of_place(text, words, position)
        if length:
            yield words[position][0], words[position + length - 1][1]
        position += length or 1


@cache
def _places() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Places by their first word, longest first."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for place in place_names():
        parts = tuple(_WORD.findall(place))
        by_first.setdefault(parts[0], []).append(parts)
    return {first: tuple(sorted(places, key=len, reverse=True)) for first, places in by_first.items()}


def _words_of_place(text: str, words: Sequence[Word], position: int) -> int:
    """How many words from here on name a place; 0 where none do."""
    for parts in _places().get(words[position][3], ()):
        together = words[position : position + len(parts)]
        gaps = (_gap(text, words, position + place) for place in range(1, len(parts)))
        if tuple(word[3] for word in together) == parts and all(gap in (" ", "-", ". ") for gap in gaps):
            common = len(parts) == 1 and together[0][2].islower() and parts[0] in _no_names()
            return 0 if common else len(parts)
    return 0


def _before_surname(folded: str) -> bool:
    """Whether a word before a clear surname is part of the name: a given name, or a word of no list."""
    return len(folded) > 2 and (folded in given_names() or (folded.isalpha() and folded not in _no_names()))


@lru_cache(maxsize=1)
def _words(text: str) -> tuple[Word, ...]:
    """A text's words; the recognisers of this module read one text after the other."""
    fold = _folded if "’" in text else str.casefold
    return tuple((*match.span(), match[0], fold(match[0])) for match in _WORD.finditer(text))


def _folded(word: str) -> str:
    return word.casefold().replace("’", "'")


def _gap(text: str, words: Sequence[Word], position: int) -> str | None:
    """What stands before a word; None behind the last."""
    return text[words[position - 1][1] : words[position][0]] if position < len(words) else None


def _last_of_name(text: str, words: Sequence[Word], first: int) -> int:
    """The position of a name's last word."""
    last, particles = first, 0
    for position in range(first + 1, len(words)):
        gap, folded = _gap(text, words, position), words[position][3]
        before = words[position - 1][3]
        if (
            gap not in (_AFTER_INITIAL if len(before) == 1 else _BETWEEN)
            or position - first - particles > MAX_FOLLOWING
        ):
            break
        particles += folded in listed("particles")
        if len(folded) == 1 or folded in listed("particles"):  # they belong to the name if more of it follows
            continue
        if not (_is_family(folded) if before in listed("particles") else _goes_on(words[first], words[position])):
            break
        last = position
    return last


def _is_family(folded: str) -> bool:
    """Whether a word after a particle is a surname, known or not."""
    return len(folded) > 2 and (folded in surnames() or folded not in _no_names())


def _goes_on(first: Word, word: Word) -> bool:
    folded = word[3]
    if folded in _clear_surnames() or folded in _clear_given():
        return True
    same_case = word[2].islower() == first[2].islower()
    return same_case and len(folded) > 2 and folded not in _no_names()
