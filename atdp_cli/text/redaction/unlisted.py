"""Words that no public list has, at the places where words of a list may stand: a public domain of all such words.

A word has 2 to `MAX_LETTERS` ASCII letters and is written as its capitalised form, which may have one further capital:
`Okonkwo`, `AcmeBrands`. Words with apostrophes or other letters are not in the domain. Each has a share of it that
only its table, its length and its further capital decide, so that shorter words are likelier.
"""

import re
import string
from typing import NamedTuple

from atdp_cli.text.redaction.decoys import DecoySlot, Draw, lists

MIN_LETTERS, MAX_LETTERS = 2, 16

_WORD = re.compile(r"[A-Z][a-z]*[A-Z]?[a-z]*")
_LENGTHS = MAX_LETTERS - MIN_LETTERS + 1


class Unlisted(NamedTuple):
    """A word of the domain, and the table of the list that it is not in."""

    table: str
    word: str


def unlisted(table: str, stands: str) -> Unlisted | None:
    """What stands at a place of a table, as an item of the domain; None where it is none.

    >>> unlisted("family", "OKONKWO"), unlisted("organisations", "AcmeBrands"), unlisted("family", "Nuñez")
    (Unlisted(table='family', word='Okonkwo'), Unlisted(table='organisations', word='AcmeBrands'), None)
    """
    for word in (stands, stands.capitalize()):
        if _WORD.fullmatch(word) and MIN_LETTERS <= len(word) <= MAX_LETTERS:
            return Unlisted(table, word)
    return None


def unlisted_share(item: Unlisted) -> float:
    """The share of the domain that a word is. All of them sum to 1."""
    letters = len(item.word)
    spelled = 0.5 / (letters - 1) if item.word[1:].lower() != item.word[1:] else 0.5
    return spelled / (len(lists()) * _LENGTHS * float(len(string.ascii_lowercase)) ** letters)


def draw_unlisted(draw: Draw) -> Unlisted:
    """A word with the probability that is its share."""
    table = sorted(lists())[draw(len(lists()))]
    letters = MIN_LETTERS + draw(_LENGTHS)
    word = "".join(string.ascii_lowercase[draw(len(string.ascii_lowercase))] for _ in range(letters)).capitalize()
    if draw(2):
        further = 1 + draw(letters - 1)
        word = word[:further] + word[further].upper() + word[further + 1 :]
    return Unlisted(table, word)


def spelled_at(place: DecoySlot, word: str) -> str:
    """A word of the domain in the case of a place."""
    first = place.choices[0]
    return word.lower() if first.islower() else word.upper() if first.isupper() else word
