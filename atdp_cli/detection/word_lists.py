"""The public word lists that ship with the package, read once. None is derived from a corpus."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from atdp_cli.files.word_lists import read_lists

_WORDS = Path(__file__).parent / "words"

_WORD = re.compile(r"\w+(?:['’]\w+)*")


@cache
def function_words() -> frozenset[str]:
    """Frequent English function words, in lower case, with straight apostrophes."""
    return frozenset(read_lists(_WORDS / "function_words.txt")[""])


def function_word_characters(text: str) -> list[tuple[int, int]]:
    """Where whole function words stand in `text`, in any case: (start, end), sorted and disjoint."""
    words = function_words()
    return [match.span() for match in _WORD.finditer(text) if match.group().lower().replace("’", "'") in words]


@cache
def common_words() -> frozenset[str]:
    """Some 40,000 English words with their inflections, in lower case, straight apostrophes left out.

    Some are names as well: see `all_names`.
    """
    return frozenset().union(*_sections("common_words.txt").values())


def commonest_words() -> frozenset[str]:
    """Those 4,000 of `common_words` that are met in any text."""
    return _sections("common_words.txt")["commonest"]


@cache
def given_names() -> frozenset[str]:
    """Given names in Latin script, casefolded, word for word: "Anne-Laure" is `anne` and `laure`."""
    sections = _sections("names.txt")
    return sections["given"] | sections["both"]


@cache
def surnames() -> frozenset[str]:
    """Surnames in Latin script, casefolded, word for word and without particles such as "van"."""
    sections = _sections("names.txt")
    return sections["surnames"] | sections["both"]


@cache
def all_names() -> frozenset[str]:
    """Given names, surnames, and those common words that spell a place, people, brand or month with a capital."""
    return frozenset().union(*_sections("names.txt").values())


def structure_words(section: str) -> frozenset[str]:
    """A section of `words/structure.txt`, in lower case but for the keywords, which are in capitals.

    They are keywords, roles, beside roles, fields, links, numbers, calendar and interjections.
    """
    return _sections("structure.txt")[section]


@cache
def place_names() -> frozenset[str]:
    """Countries, capitals and large cities, casefolded; some have several words."""
    return frozenset(map(str.casefold, read_lists(_WORDS / "places.txt", "\n")[""]))


@cache
def _sections(name: str) -> Mapping[str, frozenset[str]]:
    return {heading: frozenset(_inflected(terms)) for heading, terms in read_lists(_WORDS / name).items()}


def _inflected(terms: tuple[str, ...]) -> Iterator[str]:
    """The words, where "-ed" after a word stands for that word with this ending."""
    stem = ""
    for term in terms:
        if term.startswith("-"):
            yield stem + term[1:]
        else:
            stem = term
            yield stem
