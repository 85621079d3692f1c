"""Lists of common English words and of people's names that ship with the detector: public, fixed, read once."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files


@cache
def common_words() -> frozenset[str]:
    """Some 40,000 English words with their inflections, in lower case, straight apostrophes left out.

    Some are names as well: see `all_names`.
    """
    return frozenset().union(*_sections("common_words.txt").values())


@cache
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
    text = files("atdp_cli.text.detection").joinpath("words", "places.txt").read_text(encoding="utf-8")
    return frozenset(line.casefold() for line in text.splitlines() if line and not line.startswith("#"))


@cache
def _sections(name: str) -> dict[str, frozenset[str]]:
    text = files("atdp_cli.text.detection").joinpath("words", name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    headings = [number for number, line in enumerate(lines) if line.startswith("[")]
    bounds = zip(headings, [*headings[1:], len(lines)], strict=True)
    return {lines[start][1:-1]: frozenset(_words(lines[start + 1 : end])) for start, end in bounds}


def _words(lines: list[str]) -> Iterator[str]:
    """The words, where "-ed" after a word stands for that word with this ending."""
    stem = ""
    for item in (item for line in lines for item in line.split()):
        if item.startswith("-"):
            yield stem + item[1:]
        else:
            stem = item
            yield stem
