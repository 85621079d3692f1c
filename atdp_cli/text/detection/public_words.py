"""A veto: what the entity recogniser or the tagger takes for a name, though its words are common ones."""

import re

from atdp_cli.text.detection.function_words import function_words
from atdp_cli.text.detection.word_lists import (
    all_names,
    common_words,
    commonest_words,
    given_names,
    structure_words,
    surnames,
)

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_TIMES = frozenset({"DATE", "TIME"})

_SENTENCE_ENDS = "!?:;…\n>•*"
_BESIDE = "\"'“”‘’()[]- \t\r"
"""What may stand between the end of a sentence and the first word of the next."""

_TITLES = frozenset({"Dr", "Mr", "Ms", "St", "Mrs", "Rev", "Gen", "Col"})
"""After which, as after an initial, a full stop ends no sentence."""

_NEXT = re.compile(r"[ -]([^\W\d_]+)")

_BEFORE = 16
"""How many characters before a word are looked at; quotes and spaces before the first word of a sentence are fewer."""


def is_public(text: str, start: int, end: int, label: str) -> bool:
    """Whether a name at this place is no name: common words that nobody is called, written as common words are.

    No digit and no number word is among them. They are

    - all in lower case; of a DATE or TIME they may be somebody's name too, if they are no month or season; or
    - one of the 4,000 commonest words, all in capitals or at the start of a sentence, before no capitalised word; or
    - words that name fields of forms ("Email Address"), however they are written.

    "New Balance" and "Square" in the middle of a sentence stay.

    Args:
        text: A record's text.
        start: Where the name begins.
        end: Where it ends, exclusive.
        label: What spaCy calls it.
    """
    place = text[start:end]
    words = _WORD.findall(place)
    if not words or any(map(str.isdigit, place)):
        return False
    if label in _TIMES:
        return not any(word.istitle() for word in words[1:]) and all(map(_says_no_day, words))
    if all(map(_is_field, words)):
        return True
    return all(map(_is_common, words)) and _is_written_plainly(text, start, end, words)


def _is_written_plainly(text: str, start: int, end: int, words: list[str]) -> bool:
    if not any(word[0].isupper() for word in words):
        return True
    word = words[0]
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
    last = re.split(r"[^\w]", before[:-1])[-1]
    return last not in _TITLES and not (len(last) == 1 and last.isalpha())


def _goes_on(text: str, end: int) -> bool:
    """Whether a capitalised word follows that may be somebody's name."""
    match = _NEXT.match(text, end)
    return match is not None and match[1][0].isupper() and not match[1].isupper() and not _is_common(match[1])


def _says_no_day(word: str) -> bool:
    folded = word.casefold()
    if any(folded in structure_words(kind) for kind in ("numbers", "calendar")):
        return False
    return folded in function_words() or folded in common_words()


def _is_field(word: str) -> bool:
    folded = word.casefold()
    if folded in given_names() or folded in surnames():
        return False
    return folded in structure_words("fields") or word in structure_words("keywords")


def _is_common(word: str) -> bool:
    folded = _folded(word)
    if folded in function_words():
        return folded not in ("may", "will")
    return folded in common_words() and folded not in all_names() and folded not in structure_words("numbers")


def _folded(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s")
