"""Decoys: flagged spans give way to random values of the same shape; nothing else changes.

What stands for a span is drawn anew each time and depends on its shape alone, never on which digit, letter or word was
there, so texts that differ only within shapes have decoys of the same distribution.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from atdp_cli.text.redaction import Edit, apply_edits
from atdp_cli.text.spans import Range, Span, merge

Draw = Callable[[int], int]
"""n → a uniform draw from 0, …, n−1, for n ≥ 1."""

Choices = tuple[str, ...]
"""What one place of a decoy is drawn from, uniformly; a single choice is kept as it is."""

Shape = tuple[Choices, ...]
"""All that a decoy depends on, place by place."""

DIGITS, LOWER, UPPER = tuple(string.digits), tuple(string.ascii_lowercase), tuple(string.ascii_uppercase)

DOMAINS = ("example.com", "example.net", "example.org", "mail.example", "post.example", "office.example")
"""Domains that RFC 2606 keeps for examples."""

_PERSON, _NAMES = ("given", "family"), ("names", "names")
_DATE, _AMOUNT, _PLACE, _PEOPLE = (("calendar",) * 2, ("amounts",) * 2, ("places",) * 2, ("peoples",) * 2)

WORDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("PERSON", "PER", "EMAIL"), _PERSON),
    **dict.fromkeys(("GPE", "LOC", "FAC", "ADDRESS"), _PLACE),
    "ORG": ("organisations", "organisations"),
    **dict.fromkeys(("NORP", "LANGUAGE"), _PEOPLE),
    **dict.fromkeys(("DATE", "DATE_OF_BIRTH", "TIME"), _DATE),
    **dict.fromkeys(("CARDINAL", "ORDINAL", "QUANTITY", "PERCENT", "MONEY"), _AMOUNT),
    **dict.fromkeys(("PROPN", "MISC", "EVENT", "PRODUCT", "WORK_OF_ART", "LAW"), _NAMES),
}
"""The lists for the first and the later words of a span, by its label. Under other labels letters are drawn singly."""

WITHOUT = frozenset({"PRON", "VERB", "SUBJ", "OBJ"})
"""Labels of contextual tiers: words that have no decoys, since a sentence does not live without them."""

_WORD = r"[Aa]+(?:['’][Aa]+)*"
_PARTS = re.compile(rf"{_WORD}|.", re.DOTALL)
_EMAIL_PARTS = re.compile(rf"(?P<domain>(?<=@)[Aa0._-]+)|{_WORD}|.", re.DOTALL)
_ABBREVIATION = re.compile(r"A{1,3}|a")


@dataclass(frozen=True, slots=True)
class Decoyed:
    """A text with decoys in it.

    Attributes:
        places: Their (start, end) in `text`, sorted and disjoint.
    """

    text: str
    places: tuple[Range, ...]


def decoy(text: str, spans: Iterable[Span], draw: Draw) -> Decoyed:
    """Replace every span by a decoy; overlapping spans are merged first.

    Args:
        text: A record's text.
        spans: Spans with 0 ≤ start < end ≤ len(text), in any order.
        draw: The source of all randomness; how often it is asked depends on the shapes alone.
    """
    changes = [
        Edit(span.start, span.end, fill(shape(span.label, text[span.start : span.end]), draw)) for span in merge(spans)
    ]
    changed = apply_edits(text, changes)
    return Decoyed(changed.text, changed.placeholders)


def shape(label: str, surface: str) -> Shape:
    """What the decoy of a flagged text is drawn from.

    A digit stands for any digit and a letter for any ASCII letter of the same case, where letters without a case and
    combining marks count as lower-case; other characters stay. Under the labels of `WORDS` a word, with its inner
    apostrophes, stands for any word of its list in the same case (upper, lower, capitalised) unless it is one letter
    or up to three capitals; what follows the @ of an e-mail address is one of `DOMAINS`.
    """
    profile = "".join(map(_class, surface))
    lists = WORDS.get(label)
    if lists is None:
        return tuple(map(_single, profile))
    return tuple(_worded(profile, lists, _EMAIL_PARTS if label == "EMAIL" else _PARTS))


def fill(shape: Shape, draw: Draw) -> str:
    """A value of this shape."""
    return "".join(choices[draw(len(choices))] if len(choices) > 1 else choices[0] for choices in shape)


def _worded(profile: str, lists: tuple[str, str], parts: re.Pattern[str]) -> Iterator[Choices]:
    words = 0
    for match in parts.finditer(profile):
        part = match.group()
        if match.groupdict().get("domain"):
            yield DOMAINS
        elif part[0] not in "Aa":
            yield _single(part)
        else:
            yield from map(_single, part) if _ABBREVIATION.fullmatch(part) else (_words(lists[words > 0], _case(part)),)
            words += 1


@cache
def _class(character: str) -> str:
    """A for an upper-case letter, a for another, 0 for a digit, and any other character itself."""
    if character.isalpha():
        return "A" if character.isupper() or character.istitle() else "a"
    if character.isnumeric():
        return "0"
    if character.isupper():  # a circled letter is a symbol
        return "A"
    return "a" if character.islower() or unicodedata.category(character).startswith("M") else character


def _single(character: str) -> Choices:
    return {"0": DIGITS, "a": LOWER, "A": UPPER}.get(character, (character,))


def _case(word: str) -> str:
    letters = word.replace("'", "").replace("’", "")
    if letters[0] == "a":
        return "lower"
    return "upper" if set(letters) == {"A"} else "capitalised"


@cache
def _words(name: str, case: str) -> Choices:
    words = lists()[name]
    return tuple(word.upper() if case == "upper" else word.lower() if case == "lower" else word for word in words)


@cache
def lists() -> Mapping[str, Choices]:
    """The public lists that words are drawn from, capitalised."""
    found: dict[str, list[str]] = {}
    for line in files("atdp_cli.text").joinpath("decoy_words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            found.setdefault(name, []).extend(line.split())
    named = {name: tuple(words) for name, words in found.items()}
    every = (word for name in ("given", "family", "places", "organisations") for word in named[name])
    return named | {"names": tuple(dict.fromkeys(every))}
